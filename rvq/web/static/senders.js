// A row for each sender of a label.

import { el, mark, say } from "/dom.js";
import { Rows, state, text, troubles } from "/rows.js";
import { brief, bytes, count, rate, seconds } from "/words.js";

const who = {
  title: "Sender",
  make: (cell, { id }) => {
    const where = el("span", { class: "where" });
    cell.append(el("span", { class: "mono", title: id }, brief(id)), where);
    return where;
  },
  update: (where, { host, pid, address }) => {
    say(where, `${host ?? "host not known"}${pid ? ` · ${pid}` : ""}`);
    mark(where, "title", address ?? "");
  },
};

const room = {
  title: "Window",
  kind: "share",
  make: (cell) => {
    const [words, bar] = [el("span", { class: "share-words" }), el("span", { class: "fill" })];
    cell.append(words, el("span", { class: "bar", "aria-hidden": "true" }, bar));
    return { words, bar };
  },
  update: ({ words, bar }, { window_used, window }) => {
    say(words, typeof window === "number" ? `${bytes(window_used)} of ${bytes(window)}` : bytes(window_used));
    bar.style.width = `${Math.min(100, window ? (100 * (window_used ?? 0)) / window : 0)}%`;
  },
};

export class Senders {
  constructor(parent) {
    const columns = [who, state, text("Rate", (one) => rate(one.rate)), text("Accepted", (one) => count(one.inserted)), text("Done", (one) => count(one.acked)),
      text("Undone", (one) => count(one.undone)), room, text("Stamp", stamp), troubles([["repaired", "frames sent again"], ["lost"], ["bad_frames", "bad frames"]]),
      text("Heard", (one) => seconds(one.heard_age))];
    this.rows = new Rows(parent, { caption: "Senders of this label", columns, empty: "Nobody sends to this label now." });
  }

  show(senders) {
    this.rows.show(senders);
  }
}

const stamp = (one) => (typeof one.stamp_at === "number" ? `${count(one.stamp)} from ${count(one.stamp_at)}` : count(one.stamp));
