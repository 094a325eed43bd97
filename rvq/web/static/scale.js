// The arithmetic of charts: round tops, paths, stacks. Knows no elements.

/** A round number not below `value`, and the ticks up to it. `whole` asks for whole numbers; `least` is the least top. */
export function nice(value, { whole = false, least = 1 } = {}) {
  const wanted = Math.max(value, least);
  const power = 10 ** Math.floor(Math.log10(wanted));
  let top = [1, 1.5, 2, 3, 4, 5, 6, 8, 10].map((step) => step * power).find((step) => step >= wanted * 0.9999);
  if (whole) top = Math.max(2, 2 * Math.ceil(top / 2));
  return { top, ticks: [0, top / 2, top] };
}

/** One below the other: for each of the rows of values, its lower and upper edge. Unknown counts as 0. */
export function stack(rows) {
  const floor = new Array(rows[0]?.length ?? 0).fill(0);
  return rows.map((values) => {
    const lower = floor.slice();
    values.forEach((value, place) => { if (value > 0) floor[place] += value; });
    return { lower, upper: floor.slice() };
  });
}

/** A line through what is known; it breaks where nothing is. */
export function linePath(values, x, y) {
  let path = "";
  let drawing = false;
  values.forEach((value, place) => {
    if (Number.isNaN(value)) {
      drawing = false;
      return;
    }
    const lonely = !drawing && Number.isNaN(values[place + 1] ?? NaN);
    path += `${drawing ? "L" : "M"}${x(place)} ${y(value)}${lonely ? "h1" : ""}`;
    drawing = true;
  });
  return path;
}

/** The area between two edges. */
export function areaPath({ lower, upper }, x, y) {
  const there = upper.map((value, place) => `${x(place)} ${y(value)}`);
  const back = lower.map((value, place) => `${x(place)} ${y(value)}`).reverse();
  return `M${there.join("L")}L${back.join("L")}Z`;
}

/** A bar for each place that has something. */
export function barsPath({ lower, upper }, x, y, width) {
  let path = "";
  upper.forEach((value, place) => {
    if (value > lower[place]) {
      path += `M${(x(place) - width).toFixed(1)} ${y(lower[place])}V${y(value)}h${width.toFixed(1)}V${y(lower[place])}Z`;
    }
  });
  return path;
}
