// Elements. Text from the bus is strangers' text: it becomes text nodes and never markup.

const SVG = "http://www.w3.org/2000/svg";

export const byId = (id) => document.getElementById(id);

/** An element with attributes and children; strings become text. */
export function el(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/** Sets text only if it differs, so that nothing is drawn or read out anew. */
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export function mark(element, name, value) {
  if (value === null) element.removeAttribute(name);
  else if (element.getAttribute(name) !== String(value)) element.setAttribute(name, value);
}

/** Keeps one child for each item, in order: made once, updated each time, so that focus and hovering stay. */
export class Keyed {
  constructor(parent, make, update) {
    Object.assign(this, { parent, make, update, parts: new Map() });
  }

  show(items, keyOf) {
    const left = new Set(this.parts.keys());
    let at = this.parent.firstChild;
    for (const item of items) {
      const key = keyOf(item);
      left.delete(key);
      let part = this.parts.get(key);
      if (!part) this.parts.set(key, (part = this.make(item)));
      this.update(part, item);
      if (part.root === at) at = at.nextSibling;
      else this.parent.insertBefore(part.root, at);
    }
    for (const key of left) {
      this.parts.get(key).root.remove();
      this.parts.delete(key);
    }
  }
}
