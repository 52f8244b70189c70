// The rows on top: phases, graph runs, and the tokens that these took in per second.

import { duration, tokenRate } from "../data/units.js";
import { PHASE_COLOURS } from "./colours.js";
import { counterRow } from "./counters.js";
import { apart, laneFrom } from "./lanes.js";

const UNKNOWN_PHASE = 5;

/** @param {Recording} recording @returns {Row[]} */
export function topRows(recording) {
  const { phases, runs } = recording;
  const spansOfPhases = lanesOf(phases.map(({ start }) => start), phases.map(({ start, end }) => end - start));
  const spansOfRuns = lanesOf(runs.start, runs.end.map((end, at) => end - runs.start[at]));
  /** @param {Row["kind"]} kind @param {string} label @param {Lane[]} lanes @param {Look} look @returns {Row[]} */
  const named = (kind, label, lanes, look) =>
    lanes.map((spans, at) => ({ kind, label: lanes.length > 1 ? `${label} ${at + 1}` : label, spans, look, top: true, key: `top/${label}/${at}` }));
  const tokens = counterRow("top", "tokens/s", lanesOf(runs.start, periods(runs)), (run) => runs.tokens[run], tokenRate, 1e9);
  return [
    ...named("phases", "phases", spansOfPhases, phaseLook(phases)),
    ...named("runs", "graph runs", spansOfRuns, runLook(recording)),
    ...(tokens ? [{ ...tokens, top: true }] : []),
  ];
}

// How long each run kept the next token waiting: until the next run of its phase started, with
// whatever came between them, or else until its work was done.
/** @param {Tables["runs"]} runs */
function periods(runs) {
  const next = runs.done.slice();
  /** @type {Map<number, number>} */
  const last = new Map();
  for (const run of Uint32Array.from(runs.start.keys()).sort((a, b) => runs.start[a] - runs.start[b])) {
    const before = last.get(runs.phase[run]);
    if (before !== undefined) next[before] = runs.start[run];
    last.set(runs.phase[run], run);
  }
  return next.map((end, run) => end - runs.start[run]);
}

// Schedulers can work at the same time: what overlaps gets lanes of its own.
/** @param {number[]} starts @param {number[]} durations */
function lanesOf(starts, durations) {
  const order = Uint32Array.from(starts, (_, at) => at).sort((a, b) => starts[a] - starts[b]);
  return apart(order, starts, durations).map((things) => laneFrom(things, starts, durations));
}

/** @param {Phase[]} phases @returns {Look} */
function phaseLook(phases) {
  /** @param {number} at */
  const label = (at) => {
    const { label, rate } = phases[at];
    return rate ? [`${label} · ${tokenRate(rate)}`, label] : [label];
  };
  return {
    alpha: 1, colour: (at) => PHASE_COLOURS[phases[at].kind], label, labels: true,
    tip: (at) => [label(at)[0], `${duration(phases[at].end - phases[at].start)} in ${phases[at].runs} graph ${phases[at].runs === 1 ? "run" : "runs"}`, "click: select its time"],
  };
}

/** @param {Recording} recording @returns {Look} */
function runLook({ phases, runs }) {
  /** @param {number} at */
  const lasted = (at) => duration(runs.end[at] - runs.start[at]);
  return {
    // Neighbours differ, so that single runs can be told apart.
    alpha: 1, shade: (at) => (at % 2 === 0 ? 1 : 0.82),
    colour: (at) => PHASE_COLOURS[phases[runs.phase[at]]?.kind ?? UNKNOWN_PHASE], label: (at) => [`run ${runs.number[at]} · ${lasted(at)}`, `run ${runs.number[at]}`, String(runs.number[at])], labels: true,
    tip: (at) => [`graph run ${runs.number[at]}`, `${lasted(at)}${tokenText(runs.tokens[at])}`, "click: select its time"],
  };
}

/** @param {number | null} tokens */
function tokenText(tokens) {
  return tokens === null ? "" : `, ${tokens} ${tokens === 1 ? "token" : "tokens"}`;
}
