// Lanes: events that do not overlap, in the order of time, with what is needed to draw any
// part of them quickly. Times are never moved; events that overlap get lanes of their own.

// Lanes of one group at most; a file with more at once draws the rest over the last.
const MOST_LANES = 250;

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
  const { start, duration } = recording.columns;
  const starts = new Float64Array(events.length);
  const durations = new Float64Array(events.length);
  // A loop: `from` with a function takes ten times as long.
  for (let at = 0; at < events.length; at += 1) {
    starts[at] = start[events[at]];
    durations[at] = duration[events[at]];
  }
  return lane(starts, durations, events);
}

// As few lanes as it takes for things, by start, not to overlap: the things of each.
export function apart(things, start, end) {
  const ends = [];
  const counts = [];
  const chosen = new Uint8Array(things.length);
  for (let place = 0; place < things.length; place += 1) {
    const thing = things[place];
    let at = 0;
    while (at < ends.length && ends[at] > start(thing)) at += 1;
    at = Math.min(at, MOST_LANES - 1);
    ends[at] = end(thing);
    counts[at] = (counts[at] ?? 0) + 1;
    chosen[place] = at;
  }
  const lanes = counts.map((count) => new Uint32Array(count));
  const next = counts.map(() => 0);
  for (let place = 0; place < things.length; place += 1) {
    const at = chosen[place];
    lanes[at][next[at]] = things[place];
    next[at] += 1;
  }
  return lanes;
}

// Lanes of events, by start.
export function split(recording, events) {
  const lanes = apart(events, (event) => recording.start(event), (event) => recording.end(event));
  return lanes.map((events) => laneOf(recording, events));
}

// The part of a lane that satisfies `keep`.
export function filter(whole, keep) {
  const kept = new Uint32Array(whole.events.length);
  let length = 0;
  for (let place = 0; place < whole.events.length; place += 1) {
    if (!keep(whole.events[place])) continue;
    kept[length] = place;
    length += 1;
  }
  const pick = (from) => {
    const picked = new from.constructor(length);
    for (let at = 0; at < length; at += 1) picked[at] = from[kept[at]];
    return picked;
  };
  const part = lane(pick(whole.starts), pick(whole.durations), pick(whole.events));
  return whole.waits ? { ...part, waits: pick(whole.waits) } : part;
}
