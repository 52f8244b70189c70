// Lanes: events that do not overlap, in the order of time, with what is needed to draw any
// part of them quickly. Times are never moved; events that overlap get lanes of their own.

// Lanes of one group at most; a file with more at once draws the rest over the last.
const MOST_LANES = 250;

// Events to a block, whose longest one is known.
export const BLOCK = 64;

// One lane from arrays of equal length, by start.
/** @param {Float64Array} starts @param {Float64Array} durations @param {Uint32Array} events @returns {Lane} */
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
/** @param {Recording} recording @param {Uint32Array} events */
export function laneOf(recording, events) {
  return laneFrom(events, recording.columns.start, recording.columns.duration);
}

// A lane of things, by start, whose times stand in columns.
/** @param {Uint32Array} things @param {ArrayLike<number>} starts @param {ArrayLike<number>} durations */
export function laneFrom(things, starts, durations) {
  const [own, lasting] = [new Float64Array(things.length), new Float64Array(things.length)];
  // A loop: `from` with a function takes ten times as long.
  for (let at = 0; at < things.length; at += 1) {
    own[at] = starts[things[at]];
    lasting[at] = durations[things[at]];
  }
  return lane(own, lasting, things);
}

// As few lanes as it takes for things, by start, not to overlap: the things of each. Columns
// instead of functions, because there can be millions.
/** @param {ArrayLike<number>} things @param {ArrayLike<number>} starts @param {ArrayLike<number>} durations */
export function apart(things, starts, durations) {
  /** @type {number[][]} */
  const [ends, counts] = [[], []];
  const chosen = new Uint8Array(things.length);
  for (let place = 0; place < things.length; place += 1) {
    const thing = things[place];
    let at = 0;
    while (at < ends.length && ends[at] > starts[thing]) at += 1;
    at = Math.min(at, MOST_LANES - 1);
    ends[at] = starts[thing] + durations[thing];
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
/** @param {Recording} recording @param {Uint32Array} events */
export function split(recording, events) {
  const { start, duration } = recording.columns;
  return apart(events, start, duration).map((events) => laneOf(recording, events));
}

// One lane of events that may overlap: where they do, the one that started last is in front, and
// what it covers goes on behind it.
/** @param {Recording} recording @param {Uint32Array} events */
export function flattened(recording, events) {
  const whole = laneOf(recording, events);
  if (!overlap(whole)) return whole;
  /** @type {number[][]} */
  const [starts, durations, shown, running] = [[], [], [], []];
  let now = 0;
  /** @param {number} event @param {number} until */
  const show = (event, until) => {
    if (until <= now) return;
    starts.push(now);
    durations.push(until - now);
    shown.push(event);
    now = until;
  };
  /** @param {number} until */
  const goOn = (until) => {
    for (let last = running.pop(); last !== undefined; last = running.pop()) {
      show(last, Math.min(recording.end(last), until));
      if (recording.end(last) <= until) continue;
      running.push(last);
      break;
    }
    now = until;
  };
  for (const event of events) {
    goOn(recording.start(event));
    running.push(event);
  }
  goOn(Infinity);
  return lane(Float64Array.from(starts), Float64Array.from(durations), Uint32Array.from(shown));
}

/** @param {Lane} lane */
function overlap({ starts, durations }) {
  for (let at = 1; at < starts.length; at += 1) {
    if (starts[at] < starts[at - 1] + durations[at - 1]) return true;
  }
  return false;
}

// The part of a lane that satisfies `keep`.
/** @param {Lane} whole @param {(thing: number) => boolean} keep @returns {Lane} */
export function filter(whole, keep) {
  const kept = new Uint32Array(whole.events.length);
  let length = 0;
  for (let place = 0; place < whole.events.length; place += 1) {
    if (!keep(whole.events[place])) continue;
    kept[length] = place;
    length += 1;
  }
  /** @template {Column} Numbers @param {Column} from @param {Numbers} picked */
  const pick = (from, picked) => {
    for (let at = 0; at < length; at += 1) picked[at] = from[kept[at]];
    return picked;
  };
  const numbers = () => new Float64Array(length);
  const part = lane(pick(whole.starts, numbers()), pick(whole.durations, numbers()), pick(whole.events, new Uint32Array(length)));
  return whole.waits ? { ...part, waits: pick(whole.waits, numbers()) } : part;
}
