// Tables, version by version, and who owned which lane of each: columns and rows of one group.

import { mark, say, svg } from "/dom.js";
import { brief, many, time } from "/words.js";

const [COLUMN, LEFT, FOOT] = [58, 30, 34];
const COLUMNS_MAX = 40;
const [HEIGHT_MAX, ROW_MAX, ROW_MIN] = [260, 26, 3];

export class Timeline {
  constructor(parent, words) {
    this.words = words;
    this.plot = svg("svg", { role: "img", tabindex: "0", class: "timeline" });
    this.chosen = null; // the version that is read; the newest if null
    this.key = "";
    this.shown = [];
    parent.append(this.plot);
    new ResizeObserver(() => this.draw()).observe(parent);
    this.parent = parent;
    this.plot.addEventListener("keydown", (event) => this.onKey(event));
    this.plot.addEventListener("pointermove", (event) => this.onPointer(event));
    this.plot.addEventListener("pointerdown", (event) => this.onPointer(event));
    this.plot.addEventListener("pointerleave", () => this.choose(null));
    this.plot.addEventListener("blur", () => this.choose(null));
  }

  show(switches, colourOf, names, pinned) {
    const seen = new Map(); // several senders switch to one table
    for (const one of switches) if (!seen.has(String(one.version))) seen.set(String(one.version), one);
    const versions = [...seen.values()];
    const key = `${versions.map((one) => one.version)} ${pinned}`;
    Object.assign(this, { colourOf, names });
    if (key === this.key) return;
    Object.assign(this, { key, versions, pinned });
    this.draw();
  }

  draw() {
    const width = this.parent.clientWidth;
    if (!width || !this.versions) return;
    const room = Math.max(2, Math.min(COLUMNS_MAX, Math.floor((width - LEFT) / COLUMN)));
    this.shown = this.versions.slice(-room);
    const lanes = this.shown.reduce((most, { slots }) => Math.max(most, slots.length), 1);
    const row = Math.max(ROW_MIN, Math.min(ROW_MAX, Math.floor(HEIGHT_MAX / lanes)));
    const step = Math.min(2 * COLUMN, (width - LEFT) / Math.max(1, this.shown.length));
    Object.assign(this, { step, row, lanes });
    mark(this.plot, "height", this.shown.length ? lanes * row + FOOT : 0);
    this.plot.replaceChildren(...this.lanesOf(), ...this.shown.map((one, place) => this.column(one, place)));
    this.choose(this.chosen);
  }

  lanesOf() {
    const every = Math.ceil(14 / this.row);
    const rows = [];
    for (let lane = 0; lane < this.lanes; lane += every) {
      rows.push(svg("text", { class: "axis", x: LEFT - 8, y: lane * this.row + this.row / 2 + 4, "text-anchor": "end" }, String(lane)));
    }
    return this.shown.length ? rows : [];
  }

  column({ version, at, slots }, place) {
    const [x, gap] = [LEFT + place * this.step, this.row > 8 ? 2 : 0.5];
    const cells = slots.flatMap((id, lane) => {
      const dim = this.pinned !== null && this.pinned !== id ? " dim" : "";
      const y = lane * this.row;
      const parts = [svg("rect", { class: `cell ${this.colourOf(id)}${dim}`, x, y, width: Math.max(1, this.step - 2), height: this.row - gap, rx: this.row > 8 ? 3 : 0 })];
      if (this.row >= 14) parts.push(svg("text", { class: `cell-name ${this.colourOf(id)}${dim}`, x: x + (this.step - 2) / 2, y: y + (this.row - gap) / 2 + 4, "text-anchor": "middle" }, brief(id)));
      return parts;
    });
    const middle = x + (this.step - 2) / 2;
    const foot = this.lanes * this.row;
    return svg("g", { class: "column", "data-place": place },
      svg("rect", { class: "behind", x, y: 0, width: this.step, height: foot + FOOT }),
      ...cells,
      svg("text", { class: "axis strong", x: middle, y: foot + 14, "text-anchor": "middle" }, `v${version[0]}`),
      svg("text", { class: "axis", x: middle, y: foot + 28, "text-anchor": "middle" }, time(at)));
  }

  onPointer(event) {
    const at = event.clientX - this.plot.getBoundingClientRect().left - LEFT;
    this.choose(Math.max(0, Math.min(this.shown.length - 1, Math.floor(at / this.step))));
  }

  onKey(event) {
    const last = this.shown.length - 1;
    const place = { ArrowLeft: (this.chosen ?? last) - 1, ArrowRight: (this.chosen ?? last) + 1, Home: 0, End: last }[event.key];
    if (place === undefined) return;
    event.preventDefault();
    this.choose(Math.max(0, Math.min(last, place)));
  }

  choose(place) {
    this.chosen = place !== null && place < this.shown.length ? place : null;
    for (const column of this.plot.querySelectorAll(".column")) {
      column.classList.toggle("chosen", this.chosen === Number(column.dataset.place));
    }
    const words = this.tell(this.chosen ?? this.shown.length - 1);
    say(this.words, words);
    mark(this.plot, "aria-label", `Who owned which lane, by version of the table. ${words} Arrow keys read other versions.`);
  }

  tell(place) {
    const one = this.shown[place];
    if (!one) return "No table was heard yet: there is one when a receiver is there.";
    const before = this.versions[this.versions.indexOf(one) - 1];
    const [now, then] = [new Set(one.slots), new Set(before?.slots ?? [])];
    const list = (ids) => ids.slice(0, 6).map((id) => this.names(id)).join(", ") + (ids.length > 6 ? ` and ${ids.length - 6} more` : "");
    const came = [...now].filter((id) => !then.has(id));
    const went = [...then].filter((id) => !now.has(id));
    const changes = [came.length && `came: ${list(came)}`, went.length && `went: ${list(went)}`].filter(Boolean);
    const change = before && changes.length ? `; ${changes.join("; ")}` : "";
    return `Version ${one.version[0]} at ${time(one.at)}, written by ${brief(one.version[1])}: ${many(one.slots.length, "lane")}, ${many(now.size, "receiver")}${change}.`;
  }
}
