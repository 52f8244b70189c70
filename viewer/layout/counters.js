// Amounts per time: what was moved, computed or generated while things ran. Things that run at
// once add up, and where nothing is known nothing is drawn. Rows of levels are drawn alike.

import { fillLevels } from "./levels.js";
import { visibleBars } from "./visible.js";

/** @typedef {(thing: number) => number | null} Amount */

// Pixels to a step: areas need no finer ones, and half as many are drawn in half the time.
export const STEP = 2;

// A row for the things in `lanes`; null if none of them has an amount. `words` are those of a rate, and
// `perSecond` is what they take one amount per nanosecond as.
/** @param {string} prefix @param {string} label @param {Lane[]} lanes @param {Amount} amountOf @param {(rate: number) => string} words @param {number} [perSecond] @returns {CounterRow | null} */
export function counterRow(prefix, label, lanes, amountOf, words, perSecond = 1) {
  const amounts = lanes.map((lane) => running(lane.events, amountOf));
  if (!amounts.some((sums) => sums[sums.length - 1] > 0)) return null;
  return { kind: "counter", what: label, label, words, lanes, amounts, perSecond, key: `${prefix}/${label}`, backend: Number(prefix) };
}

/** @param {Row} row @returns {row is CounterRow} */
export function isCounter(row) {
  return row.kind === "counter";
}

// Sums up to each thing; what is unknown adds nothing.
/** @param {Uint32Array} things @param {Amount} amountOf */
function running(things, amountOf) {
  const sums = new Float64Array(things.length + 1);
  for (let at = 0; at < things.length; at += 1) sums[at + 1] = sums[at] + (amountOf(things[at]) || 0);
  return sums;
}

// The rate or level in each step of the width, in the row's unit.
/** @param {CounterRow} row @param {Span} view @param {number} width */
export function rates(row, view, width) {
  const steps = new Float64Array(Math.max(Math.ceil(width / STEP), 1));
  const perStep = ((view.end - view.start) / width) * STEP;
  if (row.levels) fillLevels(row.levels, view, perStep, steps);
  row.lanes.forEach((lane, at) => {
    const sums = row.amounts[at];
    visibleBars(lane, view, width / STEP, (x, wide, place, count, _filled, from) => {
      const amount = (sums[from + count] - sums[from]) * row.perSecond;
      if (amount === 0) return;
      if (count === 1 && wide > 1) spread(steps, x, x + wide, amount / lane.durations[place]);
      else steps[Math.min(Math.floor(x), steps.length - 1)] += amount / perStep;
    });
  });
  return steps;
}

// Adds a rate to the steps from `left` to `right`, in part where they are covered in part.
/** @param {Float64Array} steps @param {number} left @param {number} right @param {number} rate */
function spread(steps, left, right, rate) {
  const last = Math.min(Math.ceil(right), steps.length);
  for (let step = Math.max(Math.floor(left), 0); step < last; step += 1) {
    steps[step] += rate * (Math.min(right, step + 1) - Math.max(left, step));
  }
}
