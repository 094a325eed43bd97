// What was, second by second, for the charts: the last two minutes of each receiver. Bounded by time and by who is there.

import { keyOf } from "/words.js";

export const SPAN_S = 120;

export class History {
  constructor() {
    this.receivers = new Map(); // id -> { points: Map of second -> point, counts, seen, key }
  }

  /** What rvq top remembers from before this page was opened. */
  load(history) {
    for (const [id, points] of Object.entries(history.receivers ?? {})) {
      const one = this.one(id);
      for (const [at, rate, share, lag, repaired] of points) {
        const point = pointAt(one, Math.floor(at));
        Object.assign(point, { rate, share, lag });
        point.repaired += repaired ?? 0;
      }
    }
  }

  take(picture) {
    const second = Math.floor(picture.at);
    for (const { label, groups } of picture.labels) {
      for (const { group, receivers } of groups) for (const receiver of receivers) this.add(second, receiver, keyOf(label, group));
    }
    for (const [id, one] of this.receivers) {
      for (const at of one.points.keys()) if (at < second - SPAN_S - 1) one.points.delete(at);
      if (one.seen < second - SPAN_S) this.receivers.delete(id);
    }
  }

  add(second, { id, rate, share, lag, repaired, lost, state }, key) {
    const one = this.one(id);
    one.key = key;
    const point = pointAt(one, second);
    const silent = state === "silent";
    Object.assign(point, { rate: silent ? 0 : rate, share, lag: silent ? null : lag });
    if (one.counts) {
      point.repaired += Math.max(0, (repaired ?? 0) - one.counts.repaired);
      point.lost += Math.max(0, (lost ?? 0) - one.counts.lost);
    }
    one.counts = { repaired: repaired ?? 0, lost: lost ?? 0 };
    one.seen = second;
  }

  one(id) {
    let one = this.receivers.get(id);
    if (!one) this.receivers.set(id, (one = { points: new Map(), counts: null, seen: 0, key: "" }));
    return one;
  }

  /** Who was in this group in the last two minutes and is not any more: what they did is still in the charts. */
  departed(key, there) {
    return [...this.receivers].filter(([id, one]) => one.key === key && !there.has(id)).map(([id]) => id);
  }

  /** Values of one kind, one for each second up to `now`; NaN where nothing is known. A short gap keeps the last value. */
  values(id, kind, now, keeps = true) {
    const points = this.receivers.get(id)?.points;
    const values = new Array(SPAN_S + 1).fill(NaN);
    if (!points) return values;
    let last = NaN;
    let age = 0;
    for (let place = 0; place <= SPAN_S; place++) {
      const value = points.get(now - SPAN_S + place)?.[kind];
      if (typeof value === "number") [last, age] = [value, 0];
      else if (!keeps || ++age > 2) last = NaN;
      values[place] = last;
      if (!keeps) last = NaN;
    }
    return values;
  }
}

function pointAt(one, second) {
  let point = one.points.get(second);
  if (!point) one.points.set(second, (point = { rate: null, share: null, lag: null, repaired: 0, lost: 0 }));
  return point;
}
