// What holds until it changes, such as how much memory there was: a row for each, in groups of
// their own below the others.

import { bytes, frequency, power } from "../data/units.js";

/** @type {{ [unit: string]: (value: number) => string }} */
const WORDS = {
  MB: (value) => bytes(value * 1e6), "MB in use": (value) => `${bytes(value * 1e6)} in use`,
  MHz: (value) => frequency(value * 1e6), W: power,
};

/** @param {Recording} recording @returns {Group[]} */
export function levelGroups({ levels }) {
  const names = [...new Set(levels.map(({ group }) => group))];
  return names.map((name) => {
    const rows = levels.filter(({ group }) => group === name).map(levelRow);
    return { key: `levels/${name}`, label: name, backend: null, band: null, summary: { ...rows[0], key: `levels/${name}/all` }, rows };
  });
}

/** @param {Levels} levels @returns {CounterRow} */
function levelRow(levels) {
  const { group, label, unit } = levels;
  // The unit stands beside the figure.
  const shown = label.endsWith(` ${unit}`) ? label.slice(0, -unit.length - 1) : label;
  return { kind: "counter", what: unit, label, shown, words: WORDS[unit], lanes: [], amounts: [], perSecond: 1, levels, key: `levels/${group}/${label}` };
}

// The highest level in each step of the width, of which there are `steps.length`.
/** @param {Levels} levels @param {Span} view @param {number} perStep @param {Float64Array} steps */
export function fillLevels({ times, values }, view, perStep, steps) {
  let at = lastBefore(times, view.start);
  for (let step = 0; step < steps.length; step += 1) {
    let most = at < 0 ? 0 : values[at];
    const end = view.start + (step + 1) * perStep;
    while (at + 1 < times.length && times[at + 1] < end) {
      at += 1;
      most = Math.max(most, values[at]);
    }
    steps[step] = most;
  }
}

// Where the last of the sorted times is that is not after `time`; -1 if there is none.
/** @param {number[]} times @param {number} time */
function lastBefore(times, time) {
  let [low, high] = [0, times.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle] <= time) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}
