// Rows for what devices did, a lane for each stream and more where work of one stream overlaps;
// and for what the host did that is no op.

import { duration } from "../data/units.js";
import { apart, laneFrom } from "./lanes.js";

const TASK_COLOUR = "#b3a1c9";

// The streams of a backend. `colour` is that of the event a piece of work belongs to.
/** @param {Recording} recording @param {number} backend @param {(event: number) => string} colour @returns {Row[]} */
export function streamRows(recording, backend, colour) {
  const { device } = recording;
  const { work_start: starts, work_duration: durations } = recording.columns;
  /** @type {Map<number, number[]>} */
  const streams = new Map();
  for (let work = 0; work < device.count; work += 1) {
    if (recording.columns.backend[device.event(work)] !== backend) continue;
    const works = streams.get(device.stream(work));
    if (works) works.push(work);
    else streams.set(device.stream(work), [work]);
  }
  const look = workLook(recording, colour);
  return [...streams].sort(([a], [b]) => a - b).flatMap(([stream, works]) => {
    const lanes = apart(works, starts, durations);
    return lanes.map((things, at) => ({
      kind: "stream", what: "stream", label: lanes.length > 1 ? `stream ${stream} · ${at + 1}` : `stream ${stream}`,
      spans: laneFrom(things, starts, durations), look,
      eventOf: (work) => device.event(work), key: `${backend}/stream ${stream}/${at}`, backend,
    }));
  });
}

/** @param {Recording} recording @param {(event: number) => string} colour @returns {Look} */
function workLook(recording, colour) {
  const { device } = recording;
  return {
    alpha: 1, labels: true, colour: (work) => colour(device.event(work)),
    label: (work) => (device.isConcurrent(work) ? `∥ ${device.name(work)}` : device.name(work)),
    tip: (work) => [
      `${device.name(work)} ${duration(device.duration(work))}`,
      `${device.kind(work)} on stream ${device.stream(work)} for ${recording.fullName(device.event(work))}`,
      remarks(device, work).join("; "),
    ],
  };
}

// What to know about a piece of work, as sentences without their ends.
/** @param {DeviceWork} device @param {number} work */
export function remarks(device, work) {
  return [
    device.isConcurrent(work) ? "∥ beside other work, so that its own time is not exact" : "",
    device.isFirstUse(work) ? "first use, which may include loading it" : "",
  ].filter((text) => text !== "");
}

// Pipelines that were compiled, and the like; null if nothing of the kind was recorded.
/** @param {Recording} recording @returns {Group | null} */
export function hostGroup({ tasks }) {
  if (tasks.length === 0) return null;
  /** @type {Look} */
  const look = {
    alpha: 1, labels: true, colour: () => TASK_COLOUR, label: (at) => [`${tasks[at].what} ${tasks[at].name}`, tasks[at].name],
    tip: (at) => [`${tasks[at].what} ${duration(tasks[at].duration)}`, tasks[at].name, `thread ${tasks[at].thread}`],
  };
  const [starts, durations] = [tasks.map(({ start }) => start), tasks.map(({ duration }) => duration)];
  const all = Uint32Array.from(tasks.keys());
  const lanes = apart(all, starts, durations);
  /** @param {string} label @param {Uint32Array} things @returns {Row} */
  const row = (label, things) => ({ kind: "stream", what: "tasks", label, spans: laneFrom(things, starts, durations), look, key: `host/${label}` });
  return {
    key: "host", label: "Host", backend: null, band: null, summary: row("all", all),
    rows: lanes.map((things, at) => row(lanes.length > 1 ? `tasks ${at + 1}` : "tasks", things)),
  };
}
