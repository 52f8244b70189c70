// Rows of the timeline: phases and graph runs on top, then a group for each backend with its
// ops, its copies, the threads that worked on them, and its rates.

import { COPY, OP } from "../data/recording.js";
import { lane, laneOf, split } from "./lanes.js";

const HEIGHTS = { phases: 20, runs: 18, group: 20, lane: 24, thread: 16, counter: 30 };

// Everything that can have a row. Made once; what is shown of it is for `arrange`.
export function allGroups(recording, drawn) {
  const events = eventsByBackend(recording, drawn);
  const threads = threadLanes(recording);
  return recording.backends
    .map((backend, at) => backendGroup(recording, backend, at, events[at], threads[at] ?? []))
    .filter((group) => group.rows.length > 0);
}

function backendGroup(recording, backend, at, { ops, copies, all }, threads) {
  const named = (lanes, what) =>
    lanes.map((one, lane) => ({ kind: "lane", what, label: lanes.length > 1 ? `${what} ${lane + 1}` : what, lane: one, key: `${at}/${what}/${lane}`, backend: at }));
  const threadRows = threads.map(([thread, one]) => ({ kind: "thread", what: "thread", label: `thread ${thread}`, lane: one, key: `${at}/thread/${thread}`, backend: at }));
  const whole = laneOf(recording, all);
  const counter = (label, amountOf) => ({ kind: "counter", what: label, label, lane: whole, amounts: running(all, amountOf), key: `${at}/${label}`, backend: at });
  const counters = [counter("GB/s", (event) => recording.moved(event)), counter("GFLOP/s", (event) => recording.flops(event))];
  return {
    key: `${at}`,
    label: backend.label,
    backend,
    summary: { kind: "lane", what: "summary", label: "all", lane: whole, key: `${at}/all`, backend: at },
    rows: [
      ...named(split(recording, ops), "ops"), ...named(split(recording, copies), "copies"), ...threadRows,
      ...counters.filter(({ amounts }) => amounts[all.length] > 0),
    ],
  };
}

// Sums up to each event; what is unknown adds nothing.
function running(events, amountOf) {
  const sums = new Float64Array(events.length + 1);
  for (let at = 0; at < events.length; at += 1) sums[at + 1] = sums[at] + (amountOf(events[at]) || 0);
  return sums;
}

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
  const ofKind = (all, wanted) => all.filter((event) => kind[event] === wanted);
  return events.map((all) => ({ all, ops: ofKind(all, OP), copies: ofKind(all, COPY) }));
}

// Per backend, pairs of a thread's number and its lane.
function threadLanes(recording) {
  const { share_event, share_thread, share_offset, share_duration, share_wait } = recording.columns;
  const threads = recording.backends.map(() => new Map());
  const order = Uint32Array.from(share_event, (_, at) => at);
  const start = (at) => recording.start(share_event[at]) + share_offset[at];
  order.sort((a, b) => start(a) - start(b));
  for (const at of order) {
    const of = threads[recording.columns.backend[share_event[at]]];
    if (!of.has(share_thread[at])) of.set(share_thread[at], []);
    of.get(share_thread[at]).push(at);
  }
  const toLane = (shares) => {
    const column = (value) => Float64Array.from(shares, value);
    const one = lane(column(start), column((at) => share_duration[at]), Uint32Array.from(shares, (at) => share_event[at]));
    return { ...one, waits: column((at) => share_wait[at]) };
  };
  return threads.map((of) => [...of].sort(([a], [b]) => a - b).map(([thread, shares]) => [thread, toLane(shares)]));
}

// The rows that are shown, with their places, pinned ones first.
export function arrange(recording, groups, { collapsed, pinned }) {
  const rows = [];
  if (recording.phases.length > 0) rows.push({ kind: "phases", label: "phases" });
  if (recording.runs.start.length > 0) rows.push({ kind: "runs", label: "graph runs" });
  const every = groups.flatMap((group) => [group.summary, ...group.rows].map((row) => ({ ...row, group })));
  rows.push(...every.filter((row) => pinned.has(row.key)).map((row) => ({ ...row, pinned: true, label: `${row.group.label} ${row.label}` })));
  for (const group of groups) {
    const isCollapsed = collapsed.has(group.key);
    rows.push({ kind: "group", label: group.label, key: group.key, group, collapsed: isCollapsed });
    rows.push(...(isCollapsed ? [group.summary] : group.rows));
  }
  return place(rows);
}

// Phases, runs and pinned rows stay on top while the others scroll.
function place(rows) {
  let y = 0;
  let fixed = 0;
  for (const row of rows) {
    row.y = y;
    row.height = HEIGHTS[row.kind];
    row.fixed = row.kind === "phases" || row.kind === "runs" || row.pinned === true;
    y += row.height;
    if (row.fixed) fixed = y;
  }
  return { rows, height: y, fixed };
}

// Where a row begins now, from the top of all rows.
export function topOf(row, scroll) {
  return row.fixed ? row.y : row.y - scroll;
}

// The row at a height from the top of all rows.
export function rowAtHeight(rows, fixed, scroll, y) {
  return rows.find((row) => row.fixed === y < fixed && y >= topOf(row, scroll) && y < topOf(row, scroll) + row.height);
}

// The least duration that still is drawn, so that at most `most` events are.
export function leastDrawn(recording, most) {
  if (most === null || recording.count <= most) return 0;
  const durations = Float64Array.from(recording.columns.duration).sort();
  return durations[recording.count - most];
}
