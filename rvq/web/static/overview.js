// The whole bus at a glance: totals, and a card for each group of each label.

import { Keyed, el, mark, say } from "/dom.js";
import { count, keyOf, many, rate, seconds, short } from "/words.js";

const TILES = [
  ["Sent", (totals) => rate(totals.rate_in)],
  ["Done", (totals) => rate(totals.rate_out)],
  ["Undone", (totals) => short(totals.undone)],
  ["Receivers", (totals) => count(totals.receivers)],
  ["Senders", (totals) => count(totals.senders)],
  ["Worst latency", (totals, picture) => seconds(worst(picture))],
  ["Repaired", (totals) => short(totals.repaired)],
  ["Lost", (totals) => short(totals.lost), (totals) => totals.lost > 0],
  ["Dead", (totals) => short(totals.dead), (totals) => totals.dead > 0],
];

function worst(picture) {
  const lags = picture.labels.flatMap(({ groups }) => groups.flatMap(({ receivers }) => receivers.map(({ lag }) => lag)));
  return lags.reduce((most, lag) => (typeof lag === "number" && !(lag < most) ? lag : most), undefined);
}

export class Totals {
  constructor(parent) {
    this.tiles = TILES.map(([name, words, warns]) => {
      const value = el("p", { class: "value" });
      const tile = el("div", { class: "tile" }, el("p", { class: "name" }, name), value);
      parent.append(tile);
      return { tile, value, words, warns };
    });
  }

  show(picture) {
    for (const { tile, value, words, warns } of this.tiles) {
      say(value, words(picture.totals, picture));
      tile.classList.toggle("warns", Boolean(warns?.(picture.totals)));
    }
  }
}

/** Every group, and every label that has senders only. */
export function groupsOf(picture) {
  return picture.labels.flatMap((label) => {
    const groups = label.groups.length ? label.groups : [null];
    return groups.map((group) => ({ key: keyOf(label.label, group?.group), label, group }));
  });
}

/** What to show first: where most is done. */
export function busiest(items) {
  const weigh = ({ group }) => (group?.receivers ?? []).reduce((sum, one) => sum + (one.recorder ? 0 : 1 + (one.rate ?? 0)), 0);
  return items.reduce((most, item) => (most && weigh(most) >= weigh(item) ? most : item), undefined);
}

export class Cards {
  constructor(parent) {
    this.cards = new Keyed(parent, () => this.make(), (part, item) => this.update(part, item));
  }

  make() {
    const parts = {
      name: el("b"), group: el("span", { class: "soft" }), words: el("span", { class: "soft" }),
      rate: el("span", { class: "card-rate" }), warning: el("span", { class: "chip warn" }), link: el("a", { class: "card" }),
    };
    parts.link.append(el("span", { class: "card-name" }, parts.name, parts.group), parts.rate, parts.words, parts.warning);
    return { ...parts, root: el("li", {}, parts.link) };
  }

  show(items, chosen) {
    this.chosen = chosen;
    this.cards.show(items, (item) => item.key);
  }

  update(part, { key, label, group }) {
    const receivers = group?.receivers ?? [];
    const silent = receivers.filter(({ state }) => state === "silent").length;
    const warning = !group ? "nobody listens" : group.paused ? "paused" : silent ? `${silent} silent` : "";
    mark(part.link, "href", key);
    mark(part.link, "aria-current", key === this.chosen ? "true" : null);
    say(part.name, label.label);
    say(part.group, group ? group.group : "");
    const done = receivers.reduce((sum, one) => sum + (one.state === "silent" ? 0 : one.rate ?? 0), 0);
    say(part.rate, group ? rate(done) : rate(label.senders.reduce((sum, one) => sum + (one.rate ?? 0), 0)));
    say(part.words, group ? many(receivers.length, "receiver") : many(label.senders.length, "sender"));
    say(part.warning, warning);
    part.warning.hidden = !warning;
  }
}
