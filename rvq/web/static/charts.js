// The four charts of a group. Owns which numbers they show, and the words for what is now.

import { Chart } from "/chart.js";
import { SPAN_S } from "/history.js";
import { brief, count, many, percent, rate, seconds, short } from "/words.js";

const TROUBLES = [["repaired", "frames asked for again", "c4"], ["lost", "messages lost", "c5"]];

/** Shares that were told at different moments may come to more than all. */
function fit(shares) {
  for (let place = 0; place <= SPAN_S; place++) {
    const sum = shares.reduce((total, { values }) => total + (values[place] || 0), 0);
    if (sum > 1) for (const { values } of shares) values[place] /= sum;
  }
}

export class Charts {
  constructor(parent, history) {
    this.history = history;
    this.rate = new Chart(parent, {
      title: "Rate", hint: "Messages acknowledged per second, receiver upon receiver", kind: "areas", format: short,
      scale: { whole: true, least: 2 }, empty: "nothing was acknowledged yet",
    });
    this.latency = new Chart(parent, {
      title: "Latency", hint: "The longest wait in each second from being sent to being handed out", kind: "lines", format: seconds,
      scale: { least: 0.002 }, empty: "nothing was handed out yet",
    });
    this.share = new Chart(parent, {
      title: "Share", hint: "Each receiver's part of what the group acknowledged", kind: "areas", format: percent,
      top: 1, empty: "nobody has a share yet",
    });
    this.trouble = new Chart(parent, {
      title: "Loss and repair", hint: "Frames that were missing and came again; messages that never came", kind: "bars", format: count,
      scale: { whole: true, least: 2 }, empty: "nothing was lost or repaired",
    });
  }

  show(receivers, departed, colourOf, chosen, at) {
    const now = Math.floor(at);
    const of = (kind) => [...receivers, ...departed.map((id) => ({ id }))].map(({ id }) => ({
      id, name: brief(id), colour: colourOf(id), dim: chosen !== null && chosen !== id, values: this.history.values(id, kind, now),
    }));
    const told = chosen === null ? receivers : receivers.filter(({ id }) => id === chosen);
    const sum = (kind) => told.reduce((total, one) => total + (one.state === "silent" ? 0 : one[kind] ?? 0), 0);
    const lags = told.filter(({ lag }) => typeof lag === "number");
    const worst = lags.reduce((most, one) => (one.lag > (most?.lag ?? -1) ? one : most), null);
    this.rate.show(of("rate"), rate(sum("rate")));
    this.latency.show(of("lag"), worst ? `${seconds(worst.lag)} at ${brief(worst.id)}` : "–");
    const shares = of("share");
    fit(shares);
    this.share.show(shares, told.length === 1 ? percent(told[0].share) : many(told.length, "receiver"));
    const troubles = TROUBLES.map(([kind, name, colour]) => ({ id: kind, name, colour, values: this.total(told, kind, now) }));
    const last = troubles.map(({ values }) => values.reduce((all, value) => all + value, 0));
    this.trouble.show(troubles, `${count(last[0])} repaired, ${count(last[1])} lost`);
  }

  total(receivers, kind, now) {
    const total = new Array(SPAN_S + 1).fill(0);
    for (const { id } of receivers) {
      this.history.values(id, kind, now, false).forEach((value, place) => { if (value > 0) total[place] += value; });
    }
    return total;
  }
}
