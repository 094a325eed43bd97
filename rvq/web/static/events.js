// What happened, the newest first.

import { Keyed, el, say } from "/dom.js";
import { time } from "/words.js";

const SHOWN = 200;
const GRAVE = new Set(["expelled", "silent", "lost", "loss", "sender died"]);

export class Events {
  constructor(list, select) {
    this.list = list;
    this.rows = new Keyed(list, (event) => this.make(event), () => {});
    select.addEventListener("change", () => this.picture && this.show(this.picture, this.label));
    this.select = select;
  }

  make({ at, label, group, kind, text }) {
    const where = group ? `${label} · ${group}` : label ?? "";
    const chip = el("span", { class: `chip${GRAVE.has(kind) ? " warn" : ""}` }, kind);
    return { root: el("li", {}, el("time", {}, time(at)), chip, el("span", { class: "what" }, text), el("span", { class: "soft where" }, where)) };
  }

  show(picture, label) {
    Object.assign(this, { picture, label });
    const wanted = this.select.value === "one" ? picture.events.filter((event) => event.label === label) : picture.events;
    const seen = new Map(); // two alike at one moment need two keys
    const items = wanted.slice(-SHOWN).map((event) => {
      const key = JSON.stringify([event.at, event.label, event.group, event.who, event.kind, event.text]);
      seen.set(key, (seen.get(key) ?? 0) + 1);
      return { ...event, key: `${key} ${seen.get(key)}` };
    });
    this.rows.show(items.reverse(), ({ key }) => key);
    if (!items.length && !this.none) this.list.before((this.none = el("p", { class: "hint" })));
    if (this.none) say(this.none, items.length ? "" : "Nothing happened since rvq top was started.");
  }
}
