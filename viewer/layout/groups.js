// The groups of rows. One for each backend: its ops, its copies, the streams or threads that worked on
// them, and its rates. Made once; what is shown of it is for `rows.js`.

import { COPY, OP } from "../data/recording.js";
import { bandwidth, compute } from "../data/units.js";
import { bands, closedAtFirst } from "./bands.js";
import { counterRow } from "./counters.js";
import { flattened, lane, split } from "./lanes.js";
import { levelGroups } from "./levels.js";
import { requestGroup, requestsFolded } from "./requests.js";
import { hostGroup, streamRows } from "./streams.js";

// Of all lanes of one name together, and of each at least.
const SHARED_HEIGHT = 40;
const THINNEST = 4;

/** @typedef {{ all: Uint32Array, ops: Uint32Array, copies: Uint32Array }} Events */

// `colour` is asked for an event's colour when it is drawn.
/** @param {Recording} recording @param {number} drawn @param {(event: number) => string} colour @returns {Group[]} */
export function allGroups(recording, drawn, colour) {
  const events = eventsByBackend(recording, drawn);
  const threads = threadLanes(recording);
  const ofProcesses = bands(recording, events.map(({ all }) => all));
  const ofBackends = recording.backends
    .map((backend, at) => ({
      ...backendGroup(recording, backend, at, events[at], [...streamRows(recording, at, colour), ...threadRows(threads[at] ?? [], at)]),
      band: ofProcesses[backend.process ?? -1] ?? null,
    }))
    .filter((group) => group.rows.length > 0)
    .sort((a, b) => (a.backend?.process ?? -1) - (b.backend?.process ?? -1));
  const all = [requestGroup(recording), ...ofBackends, hostGroup(recording), ...levelGroups(recording)];
  return all.filter((group) => group !== null);
}

/** @param {[number, Lane][]} threads @param {number} backend @returns {Row[]} */
function threadRows(threads, backend) {
  return threads.map(([thread, one]) => ({ kind: "thread", what: "thread", label: `thread ${thread}`, lane: one, key: `${backend}/thread ${thread}`, backend }));
}

// `parts` are the rows of who did the work: streams or threads.
/** @param {Recording} recording @param {Backend} backend @param {number} at @param {Events} events @param {Row[]} parts @returns {Group} */
function backendGroup(recording, backend, at, { ops, copies, all }, parts) {
  /** @param {string} what @param {string} label @param {Lane} lane @returns {LaneRow} */
  const row = (what, label, lane) => ({ kind: "lane", what, label, lane, key: `${at}/${label}`, backend: at });
  // Lanes that overlap share the height of a row, under one name.
  /** @param {Lane[]} lanes @param {string} what @returns {LaneRow[]} */
  const named = (lanes, what) => lanes.length < 2 ? lanes.map((one) => row(what, what, one)) : lanes.map((one, number) => (
    { ...row(what, `${what} ${number + 1}`, one), shown: number === 0 ? what : "", height: Math.max(Math.floor(SHARED_HEIGHT / lanes.length), THINNEST), joined: lanes.length - number - 1 }));
  const working = [...named(split(recording, ops), "ops"), ...named(split(recording, copies), "copies")];
  const lanes = working.map(({ lane }) => lane);
  /** @type {(amount: (event: number) => number) => (event: number) => number} */
  const rated = (amount) => (event) => (recording.hasRate(event) ? amount(event) : 0);
  const counters = [
    counterRow(`${at}`, "GB/s", lanes, rated((event) => recording.moved(event)), bandwidth),
    counterRow(`${at}`, "GFLOP/s", lanes, rated((event) => recording.flops(event)), compute),
  ];
  return {
    key: `${at}`,
    label: backend.process === null ? backend.label : backend.device,
    backend,
    band: null,
    summary: row("summary", "all", flattened(recording, all)),
    rows: [...working, ...foldable(parts, at), ...counters.filter((counter) => counter !== null)],
  };
}

// Behind a row that opens them, one for each kind.
/** @param {Row[]} parts @param {number} backend @returns {Row[]} */
function foldable(parts, backend) {
  return ["stream", "thread"].flatMap((what) => {
    const rows = parts.filter((row) => row.what === what);
    if (rows.length < (what === "stream" ? 1 : 2)) return rows;
    const key = `${backend}/${what}s`;
    const label = what === "thread" ? `${rows.length} threads` : rows.length === 1 ? rows[0].label : `streams, ${rows.length} lanes`;
    return [{ kind: /** @type {const} */ ("fold"), what, label, key, backend }, ...rows.map((row) => ({ ...row, foldedBy: key }))];
  });
}

// What is folded at first: streams, because the ops say the same in one row; threads where other
// backends would be out of sight; processes and requests where there are many.
/** @param {Group[]} groups */
export function foldedAtFirst(groups) {
  const backends = groups.filter(({ backend }) => backend !== null).length;
  const folds = groups.flatMap(({ rows }) => rows.filter(({ kind }) => kind === "fold"));
  const folded = folds.filter(({ what }) => what === "stream" || backends > 1).map(({ key }) => key);
  const processes = [...new Set(groups.flatMap(({ band }) => band ?? []))];
  return new Set([...folded, ...closedAtFirst(processes), ...requestsFolded(groups)]);
}

/** @param {Recording} recording @param {number} drawn @returns {Events[]} */
function eventsByBackend(recording, drawn) {
  const { kind, backend, duration } = recording.columns;
  const counts = new Uint32Array(recording.backends.length);
  for (let event = 0; event < recording.count; event += 1) {
    if (duration[event] >= drawn) counts[backend[event]] += 1;
  }
  const events = recording.backends.map((_, at) => new Uint32Array(counts[at]));
  const next = new Uint32Array(recording.backends.length);
  for (let event = 0; event < recording.count; event += 1) {
    if (duration[event] < drawn) continue;
    const at = backend[event];
    events[at][next[at]] = event;
    next[at] += 1;
  }
  /** @param {Uint32Array} all @param {number} wanted */
  const ofKind = (all, wanted) => all.filter((event) => kind[event] === wanted);
  return events.map((all) => ({ all, ops: ofKind(all, OP), copies: ofKind(all, COPY) }));
}

// Per backend, pairs of a thread's number and its lane.
/** @param {Recording} recording @returns {[number, Lane][][]} */
function threadLanes(recording) {
  const { share_event, share_thread, share_offset, share_duration, share_wait } = recording.columns;
  /** @type {Map<number, number[]>[]} */
  const threads = recording.backends.map(() => new Map());
  const order = Uint32Array.from(share_event, (_, at) => at);
  /** @param {number} at */
  const start = (at) => recording.start(share_event[at]) + share_offset[at];
  order.sort((a, b) => start(a) - start(b));
  for (const at of order) {
    const of = threads[recording.columns.backend[share_event[at]]];
    const shares = of.get(share_thread[at]);
    if (shares) shares.push(at);
    else of.set(share_thread[at], [at]);
  }
  /** @param {number[]} shares @returns {Lane} */
  const toLane = (shares) => {
    /** @param {(at: number) => number} value */
    const column = (value) => Float64Array.from(shares, value);
    const one = lane(column(start), column((at) => share_duration[at]), Uint32Array.from(shares, (at) => share_event[at]));
    return { ...one, waits: column((at) => share_wait[at]) };
  };
  return threads.map((of) => [...of].sort(([a], [b]) => a - b).map(([thread, shares]) => [thread, toLane(shares)]));
}

// The least duration that still is drawn, so that at most `most` events are.
/** @param {Recording} recording @param {number | null} most */
export function leastDrawn(recording, most) {
  if (most === null || recording.count <= most) return 0;
  const durations = Float64Array.from(recording.columns.duration).sort();
  return durations[recording.count - most];
}
