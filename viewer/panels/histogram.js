// Where an event stands among all calls of its shape.

import { count, duration, percent } from "../data/units.js";
import { element } from "./element.js";

const BARS = 24;

// Calls of the same op, shape and backend by duration; the selected one's bar is marked.
/** @param {Recording} recording @param {number} event */
export function histogram(recording, event) {
  const alike = durationsAlike(recording, event);
  if (alike.length < 2) return [];
  const [low, high] = [alike[0], alike[alike.length - 1]];
  /** @param {number} ns */
  const bar = (ns) => (high > low ? Math.min(Math.floor(((ns - low) / (high - low)) * BARS), BARS - 1) : 0);
  /** @type {number[]} */
  const counts = new Array(BARS).fill(0);
  alike.forEach((ns) => (counts[bar(ns)] += 1));
  const most = Math.max(...counts);
  const own = bar(recording.charged(event));
  const bars = counts.map((number, at) => {
    const one = element("i", { class: at === own ? "own" : "", title: `${count(number)} calls` });
    one.style.height = `${number === 0 ? 0 : 4 + (number / most) * 44}px`;
    return one;
  });
  const faster = alike.filter((ns) => ns < recording.charged(event)).length / alike.length;
  return [
    element("h3", {}, `Among ${count(alike.length)} calls of this shape`),
    element("div", { class: "histogram", role: "img", "aria-label": `Durations from ${duration(low)} to ${duration(high)}` }, ...bars),
    element("div", { class: "scale" }, element("span", {}, duration(low)), element("span", {}, `slower than ${percent(faster)}`), element("span", {}, duration(high))),
  ];
}

/** @param {Recording} recording @param {number} event */
function durationsAlike(recording, event) {
  const [op, shape, backend] = [recording.op(event), recording.shape(event), recording.columns.backend[event]];
  const found = [];
  for (let other = 0; other < recording.count; other += 1) {
    if (recording.shape(other) === shape && recording.op(other) === op && recording.columns.backend[other] === backend) found.push(recording.charged(other));
  }
  return found.sort((a, b) => a - b);
}
