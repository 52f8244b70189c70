// The requests of a server, each in two parts: until its first token, and from there on. The parts of a
// request are numbered twice its place and one more.

import { duration, significant } from "../data/units.js";
import { PHASE_COLOURS } from "./colours.js";
import { counterRow } from "./counters.js";
import { apart, laneFrom } from "./lanes.js";

const KEY = "requests";
const [PROMPT, GENERATION] = [1, 2];
// More at once are shown as their number only, until somebody opens the group.
const MOST_OPEN = 4;

// Null where there are no several requests.
/** @param {Recording} recording @returns {Group | null} */
export function requestGroup({ requests: { list } }) {
  if (list.length < 2) return null;
  const lanes = partsOf(list);
  const look = requestLook(list);
  // One for as long as each is there: so many at once.
  const inFlight = counterRow(KEY, "in flight", lanes, (part) => durationOf(list[part >> 1], part), (number) => `${significant(number)} in flight`);
  const rows = lanes.map((spans, at) => ({ kind: /** @type {const} */ ("requests"), label: lanes.length > 1 ? `requests ${at + 1}` : "requests", spans, look, key: `${KEY}/${at}` }));
  return { key: KEY, label: "Requests", backend: null, band: null, summary: inFlight ?? rows[0], rows };
}

/** @param {Group[]} groups */
export function requestsFolded(groups) {
  return groups.filter(({ key, rows }) => key === KEY && rows.length > MOST_OPEN).map(({ key }) => key);
}

// Lanes of parts in which requests do not overlap.
/** @param {ServedRequest[]} requests */
function partsOf(requests) {
  const places = Uint32Array.from(requests.keys()).sort((a, b) => requests[a].start - requests[b].start);
  const lanes = apart(places, requests.map(({ start }) => start), requests.map(({ start, end }) => end - start));
  const starts = requests.flatMap((request) => [request.start, request.start + durationOf(request, 0)]);
  const durations = requests.flatMap((request) => [durationOf(request, 0), durationOf(request, 1)]);
  /** @param {number} at */
  const parts = (at) => {
    if (durations[2 * at + 1] === 0) return [2 * at];
    return durations[2 * at] > 0 ? [2 * at, 2 * at + 1] : [2 * at + 1];
  };
  return lanes.map((lane) => laneFrom(Uint32Array.from([...lane].flatMap(parts)), starts, durations));
}

/** @param {ServedRequest} request @param {number} part */
function durationOf({ start, end, first, beganBefore }, part) {
  const whole = end - start;
  const prompt = beganBefore ? 0 : Math.min(first ?? whole, whole);
  return part % 2 === 0 ? prompt : whole - prompt;
}

/** @param {ServedRequest[]} requests @returns {Look} */
function requestLook(requests) {
  /** @param {number} part */
  const of = (part) => requests[part >> 1];
  /** @param {number} part */
  const tip = (part) => {
    const { number, start, end, prompt, reused, first, generated, longest, for: waited } = of(part);
    return [
      `request ${number} · ${duration(end - start)}`,
      prompt === null ? "began before the recording" : `prompt of ${prompt} tokens${reused !== null && reused > 0 ? `, ${reused} more were there already` : ""}${first === null ? "" : `; first token after ${duration(first)}`}`,
      `${generated} generated${longest === null ? "" : `; longest wait ${duration(longest)}, for ${waited}`}`,
      "click: select this part of its time",
    ];
  };
  return {
    alpha: 1, shade: (part) => (of(part).number % 2 === 0 ? 1 : 0.82), colour: (part) => PHASE_COLOURS[part % 2 === 0 ? PROMPT : GENERATION],
    label: (part) => (part % 2 === 0 || of(part).beganBefore ? [`request ${of(part).number}`, String(of(part).number)] : [`${of(part).generated} generated`]), labels: true, tip,
  };
}
