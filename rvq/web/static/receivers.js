// A row for each receiver of a group: who and where it is, what it does, how it is heard; and what can be done to it.

import { el, mark, say, svg } from "/dom.js";
import { SPAN_S } from "/history.js";
import { Rows, state, text, troubles } from "/rows.js";
import { linePath } from "/scale.js";
import { brief, count, percent, rate, seconds } from "/words.js";

const [SPARK_WIDTH, SPARK_HEIGHT] = [72, 20];
const TROUBLES = [["retried"], ["dead"], ["expired"], ["lost"], ["repaired"], ["bad_frames", "bad frames"]];

export class Receivers {
  /** `view` has label, colourOf, pinned, now and slots; `pin(id)` shows one alone; `actions` is null where there are none. */
  constructor(parent, { history, view, pin, actions }) {
    Object.assign(this, { history, view, pin });
    const columns = [this.who(), state, text("Lanes", lanes), text("Weight", ({ weight }) => count(weight)), this.share(), this.rate(),
      text("Latency", ({ lag }) => seconds(lag)), text("Backlog", ({ backlog }) => count(backlog)), text("Done", ({ acked }) => count(acked)),
      troubles(TROUBLES), text("Lease", ({ lease_age }) => seconds(lease_age)), text("Heard", ({ heard_age }) => seconds(heard_age))];
    if (actions) columns.push(this.acts(actions));
    this.rows = new Rows(parent, { caption: "Receivers of this group", columns, empty: "Nobody listens in this group now. Messages wait for whoever comes." });
  }

  show(receivers) {
    // Bars are as long as twice an even share, so that shares can be told apart however many there are.
    const most = receivers.reduce((top, one) => Math.max(top, one.share ?? 0, this.due(one)), 2 / Math.max(2, receivers.length));
    this.full = Math.min(1, most);
    this.rows.show(receivers);
  }

  due({ index }) {
    return this.view.slots ? index.length / this.view.slots : 0;
  }

  who() {
    return {
      title: "Receiver",
      make: (cell, { id }) => {
        const [swatch, name, where] = [el("span", { class: "swatch" }), el("span", { class: "mono" }, brief(id)), el("span", { class: "where" })];
        const button = el("button", { type: "button", class: "pin", title: id }, swatch, name);
        button.addEventListener("click", () => this.pin(id));
        cell.append(button, where);
        return { swatch, button, where };
      },
      update: ({ swatch, button, where }, item) => {
        mark(swatch, "class", `swatch ${this.view.colourOf(item.id)}`);
        mark(button, "aria-pressed", this.view.pinned === item.id);
        mark(button, "aria-label", `Show receiver ${item.id} alone`);
        say(where, place(item));
        mark(where, "title", item.address ?? "");
      },
    };
  }

  share() {
    return {
      title: "Share",
      kind: "share",
      make: (cell) => {
        const [words, bar, fair] = [el("span", { class: "share-words" }), el("span", { class: "fill" }), el("span", { class: "fair" })];
        cell.append(words, el("span", { class: "bar", "aria-hidden": "true" }, bar, fair));
        return { words, bar, fair };
      },
      update: ({ words, bar, fair }, item) => {
        const part = item.state === "silent" ? 0 : item.share ?? 0;
        const due = this.due(item);
        say(words, percent(item.share));
        mark(bar, "class", `fill ${this.view.colourOf(item.id)}`);
        bar.style.width = `${Math.min(100, (100 * part) / this.full)}%`;
        fair.style.left = `${Math.min(100, (100 * due) / this.full)}%`;
        mark(fair.parentNode, "title", `its lanes are ${percent(due)} of all`);
      },
    };
  }

  rate() {
    return {
      title: "Rate",
      kind: "rate",
      make: (cell) => {
        const [words, path] = [el("span", { class: "rate-words" }), svg("path")];
        cell.append(svg("svg", { class: "spark", width: SPARK_WIDTH, height: SPARK_HEIGHT, "aria-hidden": "true" }, path), words);
        return { words, path };
      },
      update: ({ words, path }, item) => {
        const values = this.history.values(item.id, "rate", this.view.now);
        const top = values.reduce((most, value) => Math.max(most, value || 0), 1);
        mark(path, "class", this.view.colourOf(item.id));
        mark(path, "d", linePath(values, (at) => +((at * SPARK_WIDTH) / SPAN_S).toFixed(1), (value) => +(SPARK_HEIGHT - 1 - (value / top) * (SPARK_HEIGHT - 2)).toFixed(1)));
        say(words, rate(item.state === "silent" ? 0 : item.rate));
      },
    };
  }

  acts(actions) {
    return {
      title: "Actions",
      kind: "acts",
      make: (cell, { id }) => {
        const weight = el("input", { type: "number", min: "1", max: "64", step: "1", required: "", "aria-label": `New weight of ${brief(id)}` });
        const form = el("form", { class: "weigh" }, weight, el("button", { type: "submit", "aria-label": `Set the weight of ${brief(id)}` }, "Set weight"));
        form.addEventListener("submit", (event) => {
          event.preventDefault();
          actions.run({ do: "weight", id, label: this.view.label, weight: Number(weight.value) });
          weight.blur();
        });
        const drain = actions.confirmed("Drain", `Drain receiver ${brief(id)}`, () => ({ do: "drain", id, label: this.view.label }));
        cell.append(form, drain);
        return { weight, drain };
      },
      update: ({ weight, drain }, item) => {
        if (document.activeElement !== weight && item.weight) weight.value = item.weight;
        drain.disabled = ["draining", "silent"].includes(item.state);
      },
    };
  }
}

const place = ({ host, pid, recorder }) => `${host ?? "host not known"}${pid ? ` · ${pid}` : ""}${recorder ? " · recorder" : ""}`;

/** 0–3, 7: its slots in the table. */
function lanes({ index }) {
  const runs = [];
  for (const slot of [...index].sort((one, other) => one - other)) {
    const last = runs.at(-1);
    if (last && last[1] === slot - 1) last[1] = slot;
    else runs.push([slot, slot]);
  }
  return runs.map(([first, last]) => (first === last ? first : `${first}–${last}`)).join(", ") || "none";
}
