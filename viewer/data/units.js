// Numbers as people read them. Times are nanoseconds throughout the viewer.

const TIMES = [{ size: 1e9, unit: "s" }, { size: 1e6, unit: "ms" }, { size: 1e3, unit: "µs" }, { size: 1, unit: "ns" }];
const DAY = 24 * 3600 * 1000;

/** @param {number | null} ns */
export function duration(ns) {
  return ns === null || !Number.isFinite(ns) ? "" : scaled(ns, ["ns", "µs", "ms", "s"]);
}

// The largest unit of which a time is at least one.
/** @param {number} ns */
export function timeUnit(ns) {
  return TIMES.find(({ size }) => ns >= size) ?? TIMES[3];
}

// Powers of ten, as in GB/s.
/** @param {number | null} count */
export function bytes(count) {
  return count === null ? "" : scaled(count, ["B", "KB", "MB", "GB", "TB", "PB"]);
}

// From bytes per nanosecond: `1.77 TB/s`.
/** @param {number | null} perNs */
export function bandwidth(perNs) {
  return perNs === null || !Number.isFinite(perNs) ? "" : scaled(perNs * 1e9, ["B/s", "KB/s", "MB/s", "GB/s", "TB/s", "PB/s"]);
}

// From operations per nanosecond: `410 GFLOP/s`.
/** @param {number | null} perNs */
export function compute(perNs) {
  return perNs === null || !Number.isFinite(perNs) ? "" : scaled(perNs * 1e9, ["FLOP/s", "KFLOP/s", "MFLOP/s", "GFLOP/s", "TFLOP/s", "PFLOP/s"]);
}

// `8.39 MFLOP`.
/** @param {number} count */
export function operations(count) {
  return scaled(count, ["FLOP", "KFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP"]);
}

// `41,600 t/s`, `4.12 t/s`.
/** @param {number} perSecond */
export function tokenRate(perSecond) {
  return `${grouped(perSecond)} t/s`;
}

// `1.98 GHz`.
/** @param {number} hertz */
export function frequency(hertz) {
  return scaled(hertz, ["Hz", "kHz", "MHz", "GHz"]);
}

// `312 W`.
/** @param {number} watts */
export function power(watts) {
  return scaled(watts * 1e3, ["mW", "W", "kW"]);
}

// The number in the largest unit that leaves it at least 1.
/** @param {number} number @param {string[]} units */
function scaled(number, units) {
  let at = 0;
  // 999.5 would be rounded to four digits.
  while (Math.abs(number) >= 999.5 && at < units.length - 1) {
    number /= 1000;
    at += 1;
  }
  return `${significant(number)} ${units[at]}`;
}

/** @param {number} number */
export function count(number) {
  return String(Math.round(number)).replace(/\B(?=(\d{3})+$)/g, ",");
}

/** @param {number} fraction */
export function percent(fraction) {
  return `${rounded(fraction * 100, 1)}%`;
}

// Three digits, which is what can be compared at a glance.
/** @param {number} number */
export function significant(number) {
  const size = Math.abs(number);
  const text = rounded(number, size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2);
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}

// The same, but thousands have all their digits: `41,600`.
/** @param {number} number */
export function grouped(number) {
  return Math.abs(number) >= 1000 ? count(number) : significant(number);
}

// What lies exactly between two becomes the even one, as in the reports: whole nanoseconds often do.
/** @param {number} number @param {number} digits */
function rounded(number, digits) {
  const text = number.toFixed(digits);
  const isBetween = Math.abs((number * 10 ** digits) % 1) === 0.5 && /^50*$/.test(number.toFixed(digits + 60).slice(-60));
  if (!isBetween || "02468".includes(text[text.length - 1])) return text;
  return (number - (Math.sign(number) * 0.1) / 10 ** digits).toFixed(digits);
}

// `14:03:27.250`, where the reader is.
/** @param {number} milliseconds */
export function clockTime(milliseconds) {
  const time = new Date(milliseconds);
  /** @param {number} number @param {number} digits */
  const padded = (number, digits) => String(number).padStart(digits, "0");
  const parts = [time.getHours(), time.getMinutes(), time.getSeconds()].map((part) => padded(part, 2));
  return `${parts.join(":")}.${padded(time.getMilliseconds(), 3)}`;
}

/** @type {{ [unit: string]: number }} */
const UNITS = { ns: 1, us: 1e3, "µs": 1e3, ms: 1e6, s: 1e9 };

// `50us` in nanoseconds; null for what is no time.
/** @param {string} text */
export function parseDuration(text) {
  const found = /^([0-9.]+)\s*(ns|us|µs|ms|s)$/.exec(text);
  return found ? Number(found[1]) * UNITS[found[2]] : null;
}

// `14:03:27.5` where the reader is, or `90s` since the first event, in nanoseconds after that; null for
// what is no time.
/** @param {string} text @param {number | null} clock */
export function parseTime(text, clock) {
  const found = /^(\d{1,2}):(\d{2})(?::(\d{2}(?:\.\d*)?))?$/.exec(text);
  if (!found) return parseDuration(text);
  if (clock === null) return null;
  const time = new Date(clock);
  time.setHours(Number(found[1]), Number(found[2]), 0, 0);
  const seconds = Number(found[3] ?? 0);
  // A recording may go on past midnight: half a day back is tomorrow.
  const ahead = time.getTime() + seconds * 1e3 - clock;
  return (ahead < -DAY / 2 ? ahead + DAY : ahead) * 1e6;
}
