// One chart of the last two minutes: areas, lines or bars, a line to read values at, by mouse, finger or arrow keys.

import { Keyed, el, mark, say, svg } from "/dom.js";
import { SPAN_S } from "/history.js";
import { areaPath, barsPath, linePath, nice, stack } from "/scale.js";

const HEIGHT = 168;
const [LEFT, RIGHT, TOP, BOTTOM] = [46, 8, 10, 20];
const TOLD = 8;
const MANY = 12; // from then on shapes are drawn finer

export class Chart {
  /** kind: "areas" (stacked), "lines" or "bars" (stacked). `format` makes words of values. */
  constructor(parent, { title, hint, kind, format, scale = {}, top = null, empty }) {
    Object.assign(this, { kind, format, scale, fixed: top, empty, title, series: [], place: null, width: 0 });
    this.now = el("span", { class: "chart-now" });
    this.plot = svg("svg", { role: "img", tabindex: "0", height: HEIGHT });
    this.grid = svg("g", { class: "grid", "aria-hidden": "true" });
    const bodies = svg("g", { class: `shapes ${kind}` });
    this.cursor = svg("line", { class: "cursor", y1: TOP, y2: HEIGHT - BOTTOM, visibility: "hidden" });
    this.none = svg("text", { class: "none", "text-anchor": "middle", y: HEIGHT / 2 });
    this.plot.append(this.grid, bodies, this.none, this.cursor);
    this.tip = el("div", { class: "tip", hidden: "" });
    const caption = el("figcaption", {}, el("h3", {}, title), this.now, el("p", { class: "hint" }, hint));
    this.root = el("figure", { class: "panel chart" }, caption, this.plot, this.tip);
    parent.append(this.root);
    this.shapes = new Keyed(bodies, () => ({ root: svg("path") }), (part, one) => this.shape(part.root, one));
    new ResizeObserver(() => this.draw()).observe(this.plot);
    this.plot.addEventListener("pointermove", (event) => this.point(this.placeAt(event)));
    this.plot.addEventListener("pointerdown", (event) => this.point(this.placeAt(event)));
    this.plot.addEventListener("pointerleave", () => this.point(null));
    this.plot.addEventListener("blur", () => this.point(null));
    this.plot.addEventListener("keydown", (event) => this.key(event));
  }

  /** series: [{ id, name, colour, values, dim }], all of SPAN_S + 1 values; `words` is the value of now. */
  show(series, words) {
    this.series = series;
    say(this.now, words);
    mark(this.plot, "aria-label", `${this.title}, the last two minutes. Now ${words}. Arrow keys read values.`);
    this.draw();
  }

  draw() {
    this.width = this.plot.clientWidth;
    if (!this.width) return;
    const edges = this.kind === "lines" ? null : stack(this.series.map((one) => one.values));
    const tops = edges ? edges.at(-1)?.upper ?? [0] : this.series.flatMap((one) => one.values.filter((value) => value > 0));
    const largest = tops.reduce((most, value) => Math.max(most, value), 0);
    const { top, ticks } = this.fixed ? { top: this.fixed, ticks: [0, this.fixed / 2, this.fixed] } : nice(largest, this.scale);
    const inner = this.width - LEFT - RIGHT;
    this.x = (place) => +(LEFT + (inner * place) / SPAN_S).toFixed(1);
    this.y = (value) => +(HEIGHT - BOTTOM - ((HEIGHT - TOP - BOTTOM) * Math.min(value, top)) / top).toFixed(1);
    this.bar = Math.max(1, (0.7 * inner) / SPAN_S);
    this.drawGrid(ticks);
    const items = this.series.map((one, number) => ({ ...one, edges: edges?.[number] }));
    this.plot.classList.toggle("many", items.length > MANY);
    this.shapes.show(items, (one) => one.id);
    const known = this.series.some((one) => one.values.some((value) => (this.kind === "bars" ? value > 0 : !Number.isNaN(value))));
    say(this.none, known ? "" : this.empty);
    mark(this.none, "x", LEFT + inner / 2);
    if (this.place !== null) this.point(this.place);
  }

  shape(path, { colour, dim, values, edges }) {
    mark(path, "class", `${colour}${dim ? " dim" : ""}`);
    if (this.kind === "lines") mark(path, "d", linePath(values, this.x, this.y));
    else if (this.kind === "areas") mark(path, "d", areaPath(edges, this.x, this.y));
    else mark(path, "d", barsPath(edges, this.x, this.y, this.bar));
  }

  drawGrid(ticks) {
    const key = `${this.width} ${ticks}`;
    if (this.gridKey === key) return;
    this.gridKey = key;
    const right = this.width - RIGHT;
    const lines = ticks.flatMap((tick) => [
      svg("line", { x1: LEFT, x2: right, y1: this.y(tick), y2: this.y(tick) }),
      svg("text", { x: LEFT - 6, y: this.y(tick) + 4, "text-anchor": "end" }, this.format(tick)),
    ]);
    const words = [[0, "2 min ago", "start"], [SPAN_S / 2, "1 min", "middle"], [SPAN_S, "now", "end"]];
    const times = words.map(([place, text, anchor]) => svg("text", { x: this.x(place), y: HEIGHT - 4, "text-anchor": anchor }, text));
    this.grid.replaceChildren(...lines, ...times);
  }

  placeAt(event) {
    const at = event.clientX - this.plot.getBoundingClientRect().left;
    return Math.round(((at - LEFT) / (this.width - LEFT - RIGHT)) * SPAN_S);
  }

  key(event) {
    const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10 }[event.key];
    if (event.key === "Escape") this.point(null);
    if (!step && event.key !== "Home" && event.key !== "End") return;
    event.preventDefault();
    mark(this.tip, "aria-live", "polite");
    if (event.key === "Home") this.point(0);
    else if (event.key === "End") this.point(SPAN_S);
    else this.point((this.place ?? SPAN_S) + step);
  }

  /** Reads the values there; null reads none. */
  point(place) {
    this.place = place === null ? null : Math.max(0, Math.min(SPAN_S, place));
    mark(this.cursor, "visibility", place === null ? "hidden" : "visible");
    this.tip.hidden = place === null;
    if (place === null || !this.width) return;
    const x = this.x(this.place);
    mark(this.cursor, "x1", x);
    mark(this.cursor, "x2", x);
    const read = this.series
      .map((one) => ({ ...one, value: one.values[this.place] }))
      .filter(({ value, dim }) => !dim && (this.kind === "bars" ? value > 0 : !Number.isNaN(value)))
      .sort((one, other) => other.value - one.value);
    const ago = SPAN_S - this.place;
    const rows = read.slice(0, TOLD).map(({ name, colour, value }) =>
      el("p", {}, el("span", { class: `swatch ${colour}` }), el("b", {}, name), ` ${this.format(value)}`));
    if (read.length > TOLD) rows.push(el("p", { class: "hint" }, `and ${read.length - TOLD} more`));
    if (!read.length) rows.push(el("p", { class: "hint" }, this.empty));
    this.tip.replaceChildren(el("p", { class: "hint" }, ago ? `${ago} s ago` : "now"), ...rows);
    const beside = x > this.width / 2 ? x - this.tip.offsetWidth - 6 : x + 22;
    this.tip.style.left = `${Math.max(4, Math.min(beside, this.width - this.tip.offsetWidth - 4))}px`;
  }
}
