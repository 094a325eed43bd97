// One colour for each receiver, for as long as the page is open: eight that colour-blind people tell apart, then the same
// again, paler. Nothing is said by colour alone.

const COLOURS = 8;
const REMEMBERED = 4096;

export class Colours {
  constructor() {
    this.given = new Map(); // "label group" -> Map of id -> number
  }

  /** Gives every id of a group its number, the oldest first. */
  of(group, ids) {
    let given = this.given.get(group);
    if (!given) this.given.set(group, (given = new Map()));
    if (given.size + ids.length > REMEMBERED) given.clear();
    for (const id of ids) if (!given.has(id)) given.set(id, given.size);
    return (id) => nameOf(given.get(id));
  }
}

/** The class names of the n-th colour. */
function nameOf(number) {
  if (number === undefined) return "c-none";
  return `c${number % COLOURS}${number % (2 * COLOURS) >= COLOURS ? " pale" : ""}`;
}
