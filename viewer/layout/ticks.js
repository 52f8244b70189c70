// Round times for the ruler.

import { duration, timeUnit } from "../data/units.js";

const APART = 110;

// `{ time, label }` about every hundred pixels.
/** @param {Span} view @param {number} width */
export function ticks(view, width) {
  const step = roundStep(((view.end - view.start) * APART) / Math.max(width, 1));
  const list = [];
  for (let time = Math.ceil(view.start / step) * step; time <= view.end && list.length < 200; time += step) {
    list.push({ time, label: label(time, step) });
  }
  return list;
}

// The next of 1, 2, 5, 10, 20, 50, …
/** @param {number} least */
function roundStep(least) {
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1e-3)));
  return power * ([1, 2, 5, 10].find((factor) => factor * power >= least) ?? 10);
}

// Digits down to the step, so that neighbours differ.
/** @param {number} time @param {number} step */
function label(time, step) {
  if (time === 0) return "0";
  const { size, unit } = timeUnit(time);
  const digits = Math.max(0, Math.ceil(Math.log10(size / step)));
  return digits > 6 ? duration(time) : `${(time / size).toFixed(digits)} ${unit}`;
}
