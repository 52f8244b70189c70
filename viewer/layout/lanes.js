// Lanes: events that do not overlap, in the order of time, with what is needed to draw any
// part of them quickly. Times are never moved; events that overlap get lanes of their own.

// Lanes of one group at most; a file with more at once draws the rest over the last.
const MOST_LANES = 32;

// Events to a block, whose longest one is known.
export const BLOCK = 64;

// One lane from arrays of equal length, by start.
export function lane(starts, durations, events) {
  const blocks = Math.ceil(events.length / BLOCK);
  const longest = new Uint32Array(blocks);
  const busy = new Float64Array(blocks);
  for (let at = 0; at < events.length; at += 1) {
    const block = Math.floor(at / BLOCK);
    busy[block] += durations[at];
    if (at % BLOCK === 0 || durations[at] > durations[longest[block]]) longest[block] = at;
  }
  return { starts, durations, events, longest, busy };
}

// A lane of those events, which must be by start.
export function laneOf(recording, events) {
  const starts = Float64Array.from(events, (event) => recording.start(event));
  const durations = Float64Array.from(events, (event) => recording.duration(event));
  return lane(starts, durations, Uint32Array.from(events));
}

// As few lanes as it takes for events, by start, not to overlap.
export function split(recording, events) {
  const ends = [];
  const lanes = [];
  for (const event of events) {
    const start = recording.start(event);
    let at = ends.findIndex((end) => end <= start);
    if (at === -1) at = Math.min(ends.length, MOST_LANES - 1);
    (lanes[at] ??= []).push(event);
    ends[at] = recording.end(event);
  }
  return lanes.map((events) => laneOf(recording, events));
}

// The part of a lane that satisfies `keep`.
export function filter(whole, keep) {
  const at = [];
  whole.events.forEach((event, place) => {
    if (keep(event)) at.push(place);
  });
  const pick = (from) => from.constructor.from(at, (place) => from[place]);
  const part = lane(pick(whole.starts), pick(whole.durations), pick(whole.events));
  return whole.waits ? { ...part, waits: pick(whole.waits) } : part;
}
