// Numbers as people read them. Times are nanoseconds throughout the viewer.

const STEPS = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]];

export function duration(ns) {
  if (ns === null || !Number.isFinite(ns)) return "";
  if (ns === 0) return "0";
  const [size, unit] = STEPS.find(([size]) => Math.abs(ns) >= size) ?? STEPS[3];
  return `${significant(ns / size)} ${unit}`;
}

export function bytes(count) {
  if (count === null) return "";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let at = 0;
  while (count >= 1024 && at < units.length - 1) {
    count /= 1024;
    at += 1;
  }
  return `${significant(count)} ${units[at]}`;
}

export function count(number) {
  return String(Math.round(number)).replace(/\B(?=(\d{3})+$)/g, ",");
}

export function percent(fraction) {
  return `${(fraction * 100).toFixed(1)} %`;
}

// A rate in billions per second: bytes or operations per nanosecond are just that.
export function rate(amount, ns) {
  return amount === null || ns <= 0 ? "" : significant(amount / ns);
}

// Flops with their magnitude: `8.39 M`.
export function magnitude(number) {
  if (number === null) return "";
  const found = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]].find(([size]) => number >= size);
  return found ? `${significant(number / found[0])} ${found[1]}` : String(number);
}

// Three digits, which is what can be compared at a glance.
export function significant(number) {
  const size = Math.abs(number);
  if (size >= 1000) return count(number);
  return number.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : 2);
}

const UNITS = { ns: 1, us: 1e3, "µs": 1e3, ms: 1e6, s: 1e9 };

// `50us` in nanoseconds; null for what is no time.
export function parseDuration(text) {
  const found = /^([0-9.]+)\s*(ns|us|µs|ms|s)$/.exec(text);
  return found ? Number(found[1]) * UNITS[found[2]] : null;
}
