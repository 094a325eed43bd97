// A table that keeps its rows: one for each item, made once. On narrow screens each row is a card, by style alone.

import { Keyed, el, say } from "/dom.js";

export class Rows {
  /** columns: [{ title, make(cell, item), update(part, item), wide }]; what `make` returns is handed to `update`. */
  constructor(parent, { caption, columns, empty }) {
    this.columns = columns;
    const body = el("tbody");
    const head = el("tr", {}, ...columns.map(({ title, kind }) => el("th", { scope: "col", class: kind ?? "" }, title)));
    this.table = el("table", { class: "rows" }, el("caption", { class: "unseen" }, caption), el("thead", {}, head), body);
    this.none = el("p", { class: "hint" }, empty);
    // Scrolls by itself where it is too wide, also by keys.
    this.frame = el("div", { class: "wide", tabindex: "0", role: "region", "aria-label": caption }, this.table);
    parent.append(this.frame, this.none);
    this.rows = new Keyed(body, (item) => this.make(item), (part, item) => this.update(part, item));
  }

  show(items) {
    this.frame.hidden = !items.length;
    this.none.hidden = Boolean(items.length);
    this.rows.show(items, ({ id }) => id);
  }

  make(item) {
    const root = el("tr", { "data-id": item.id });
    const parts = this.columns.map((column, number) => {
      const cell = el(number ? "td" : "th", number ? { "data-title": column.title, class: column.kind ?? "" } : { scope: "row" });
      root.append(cell);
      return column.make ? column.make(cell, item) : cell;
    });
    return { root, parts };
  }

  update({ root, parts }, item) {
    root.dataset.state = item.state;
    this.columns.forEach((column, number) => column.update(parts[number], item));
  }
}

/** A column that is text alone. */
export const text = (title, words, kind = "number") => ({ title, kind, update: (cell, item) => say(cell, words(item)) });

/** What it is, in a word and a sign: never by colour alone. */
const SIGNS = { in: "●", sending: "●", idle: "○", joining: "◔", draining: "◑", paused: "‖", waiting: "◌", silent: "▲" };

export const state = {
  title: "State",
  make: (cell) => {
    const [sign, word] = [el("span", { "aria-hidden": "true" }), el("span")];
    const chip = el("span", { class: "chip" }, sign, " ", word);
    cell.append(chip);
    return { chip, sign, word };
  },
  update: ({ chip, sign, word }, item) => {
    chip.dataset.state = item.state;
    say(sign, SIGNS[item.state] ?? "●");
    say(word, item.state);
  },
};

/** Counts that are above zero and should not be. */
export const troubles = (kinds) => ({
  title: "Trouble",
  kind: "notes",
  update: (cell, item) => say(cell, kinds.filter(([kind]) => item[kind] > 0).map(([kind, words]) => `${item[kind].toLocaleString("en")} ${words ?? kind}`).join(", ") || "none"),
});
