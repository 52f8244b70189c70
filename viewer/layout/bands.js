// A band for each process of a page of several: its backends, or one row for all of them if it is closed.

import { flattened } from "./lanes.js";

// More processes than this are closed at first.
const MOST_OPEN = 4;

// The bands of a recording by process; none for a single one.
/** @param {Recording} recording @param {Uint32Array[]} eventsOfBackend @returns {Band[]} */
export function bands(recording, eventsOfBackend) {
  return recording.processes.map(({ label, host }, process) => {
    const own = eventsOfBackend.filter((_, backend) => recording.backends[backend].process === process);
    const key = `process ${process}`;
    return {
      key, label: host === null ? label : `${label} · ${host}`,
      summary: { kind: "lane", what: "summary", label: "all", process, lane: flattened(recording, inOrder(own)), key: `${key}/all` },
    };
  });
}

// All of them by start, which is the order of their numbers.
/** @param {Uint32Array[]} lists */
function inOrder(lists) {
  if (lists.length === 1) return lists[0];
  const all = new Uint32Array(lists.reduce((sum, { length }) => sum + length, 0));
  lists.reduce((at, list) => (all.set(list, at), at + list.length), 0);
  return all.sort();
}

/** @param {Band[]} bands */
export function closedAtFirst(bands) {
  return bands.length > MOST_OPEN ? bands.map(({ key }) => key) : [];
}
