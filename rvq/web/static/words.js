// Numbers and times as people read them. What is not known is a dash.

const DASH = "–";
const plain = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const fine = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });
const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });

const known = (value) => typeof value === "number" && Number.isFinite(value);

export const count = (value) => (known(value) ? plain.format(value) : DASH);

/** 12,345 and 1.23M: at most five characters or so. */
export function short(value) {
  if (!known(value)) return DASH;
  if (value >= 1e9) return `${fine.format(value / 1e9)}G`;
  if (value >= 1e6) return `${fine.format(value / 1e6)}M`;
  if (value >= 1e4) return `${fine.format(value / 1e3)}k`;
  return value >= 100 || Number.isInteger(value) ? plain.format(value) : fine.format(value);
}

export const rate = (value) => (known(value) ? `${short(value)}/s` : DASH);
export const percent = (value) => (known(value) ? `${fine.format(100 * value)} %` : DASH);

export function seconds(value) {
  if (!known(value)) return DASH;
  if (value < 0) return "0 ms"; // two hosts' clocks
  if (value < 0.0995) return `${fine.format(1000 * value)} ms`;
  if (value < 0.9995) return `${plain.format(1000 * value)} ms`;
  if (value < 120) return `${fine.format(value)} s`;
  return value < 7200 ? `${plain.format(value / 60)} min` : `${plain.format(value / 3600)} h`;
}

export function bytes(value) {
  if (!known(value)) return DASH;
  if (value >= 1048576) return `${fine.format(value / 1048576)} MiB`;
  return value >= 1024 ? `${fine.format(value / 1024)} KiB` : `${plain.format(value)} B`;
}

export const time = (at) => (known(at) ? clock.format(new Date(1000 * at)) : DASH);
export const brief = (id) => String(id).slice(0, 4);
/** How a group is named in addresses of the page; without a group, a label that has none. */
export const keyOf = (label, group) => `#/${[label, ...(group === undefined ? [] : [group])].map(encoded).join("/")}`;
const encoded = (part) => encodeURIComponent(part.toWellFormed?.() ?? part); // half a character would raise
export const many = (number, one, more = `${one}s`) => `${count(number)} ${number === 1 ? one : more}`;
