// How long a backend computed and copied in a range. What overlaps counts once, and where it
// computes and copies at once, it computes: as in the reports.

import { lowerBound } from "./visible.js";

/** @param {Recording} recording @param {Group} group @param {Span} range @returns {BackendTimes} */
export function timesIn(recording, group, range) {
  /** @param {string} what */
  const lanes = (what) => group.rows.flatMap((row) => (row.what === what && row.lane ? [row.lane] : []));
  const busy = covered(lanes("ops"), range);
  const active = covered([...lanes("ops"), ...lanes("copies")], range);
  return { busy, copying: active - busy, idle: Math.max(recording.recordedIn(range, group.backend?.process ?? null) - active, 0), inRange: true };
}

// How much of the range the things of all lanes cover together. The lanes are walked side by side.
/** @param {Lane[]} lanes @param {Span} range */
function covered(lanes, range) {
  const places = lanes.map((lane) => Math.max(lowerBound(lane.starts, range.start, 0) - 1, 0));
  let [sum, until] = [0, range.start];
  for (;;) {
    let first = -1;
    lanes.forEach(({ starts }, at) => {
      const place = places[at];
      if (place < starts.length && starts[place] < range.end && (first < 0 || starts[place] < lanes[first].starts[places[first]])) first = at;
    });
    if (first < 0) return sum;
    const [start, length] = [lanes[first].starts[places[first]], lanes[first].durations[places[first]]];
    const end = Math.min(start + length, range.end);
    sum += Math.max(end - Math.max(start, until), 0);
    until = Math.max(until, end);
    places[first] += 1;
  }
}
