// Totals as a tree, for all events or those in a range: operation, backend, shape; or layer,
// operation; or phase, operation. Percentiles are exact.

// Ways to group: for each level how an event's group is named, by a number.
/** @type {{ [name: string]: { title: string, levels: Level[] } }} */
export const GROUPINGS = {
  op: { title: "Operation → Backend → Shape", levels: ["op", "backend", "shape"] },
  layer: { title: "Layer → Operation", levels: ["layer", "op"] },
  phase: { title: "Phase → Operation", levels: ["phase", "op"] },
};

/** @typedef {import("./estimates.js").Amount} Amount */
/** @typedef {ReturnType<typeof summary>} Measured */

/** @type {Record<Level, (recording: Recording) => (event: number) => number>} */
const KEYS = {
  op: (recording) => (event) => recording.op(event),
  backend: (recording) => (event) => recording.columns.backend[event],
  shape: (recording) => (event) => recording.shape(event),
  layer: (recording) => (event) => recording.columns.layer[event],
  phase: (recording) => (event) => phaseNumber(recording, event),
};

/** @type {Record<Level, (recording: Recording, key: number) => string>} */
const NAMES = {
  op: (recording, key) => recording.opNames[key],
  backend: (recording, key) => recording.backends[key].label,
  shape: (recording, key) => recording.shapes[key],
  layer: (recording, key) => (key === 0 ? "no layer" : `layer ${key - 1}`),
  phase: (recording, key) => recording.phases[key - 1]?.label ?? "no phase",
};

/** @param {Recording} recording @param {number} event */
function phaseNumber(recording, event) {
  const run = recording.columns.run[event];
  return run === 0 ? 0 : recording.runs.phase[run - 1] + 1;
}

// What of the recording is added up: events that overlap `range`, are found by the search and are no
// `hidden` ops.
/** @typedef {{ range: Span | null, hidden: Set<number>, searched: Question | null }} Part */

/** @type {Part} */
export const EVERYTHING = { range: null, hidden: new Set(), searched: null };

// The part in groups of groups. Estimates are of all calls of an op, not of those in a range or those that
// are searched for: `whole` says that there are some, and none of them is in the rows.
/** @param {Recording} recording @param {string} grouping @param {Part} part */
export function statistics(recording, grouping, part) {
  const { range, hidden, searched } = part;
  /** @type {Question | null} */
  const shown = hidden.size === 0 ? null : (event) => !hidden.has(recording.op(event));
  const keep = shown && searched ? (/** @type {number} */ event) => shown(event) && searched(event) : shown ?? searched;
  const events = eventsIn(recording, range, keep);
  const isEstimated = recording.estimates.any && !range && !searched;
  const { levels } = GROUPINGS[grouping];
  /** @param {Path} path */
  const estimates = (path) => (isEstimated ? recording.estimates.within(grouping, levels, path, hidden) : new Map());
  const rows = group(recording, levels, events, recording.recordedIn(range), [], estimates);
  // Where only calls that start a copy were timed, nothing is known of what the work took.
  const known = rows.filter((row) => row.isTimed || row.estimated > 0);
  return { rows, total: known.reduce((sum, row) => sum + row.total, 0), count: events.length, whole: recording.estimates.any && !isEstimated };
}

// What was measured of a row, and what is estimated beyond it: of splits that were timed as wholes, the
// rest remains.
/** @param {Measured} row @param {Amount | undefined} amount @param {number} wall */
function withEstimate(row, amount, wall) {
  if (!amount) return row;
  const { ns, error, calls, covers } = amount;
  const total = Math.max((row.isTimed ? row.total : 0) + ns, 0);
  const known = (row.isTimed ? row.timed : 0) + covers;
  return {
    ...row, total, share: wall > 0 ? total / wall : 0, count: row.count + Math.round(calls), estimated: Math.max(ns, 0),
    timed: known, average: known > 0 ? total / known : row.average, error,
  };
}

/** @param {Recording} recording @param {Span | null} range @param {Question | null} keep */
export function eventsIn(recording, range, keep) {
  const { start, duration } = recording.columns;
  const events = new Uint32Array(recording.count);
  let length = 0;
  for (let event = 0; event < recording.count; event += 1) {
    if (range && (start[event] >= range.end || start[event] + duration[event] <= range.start)) continue;
    if (keep && !keep(event)) continue;
    events[length] = event;
    length += 1;
  }
  return events.subarray(0, length);
}

/** @param {Recording} recording @param {Level[]} levels @param {Uint32Array} events @param {number} wall @param {Path} path @param {(path: Path) => Map<number, Amount>} estimates @returns {Total[]} */
function group(recording, levels, events, wall, path, estimates) {
  const [level, ...deeper] = levels;
  const parts = new Map(partition(events, KEYS[level](recording)));
  const amounts = estimates(path);
  // Of some groups nothing was measured here.
  for (const key of amounts.keys()) if (!parts.has(key)) parts.set(key, new Uint32Array(0));
  const rows = [...parts].map(([key, part]) => {
    const own = [...path, { level, key }];
    const amount = amounts.get(key);
    const name = NAMES[level](recording, key);
    return {
      name: level === "op" && amount && amount.ns < 0 ? `rest of ${name}s` : name,
      level,
      path: own,
      ...withEstimate(summary(recording, part, wall), amount, wall),
      // Made when the row is opened: most never are.
      children: () => (deeper.length > 0 ? group(recording, deeper, part, wall, own, estimates) : []),
      leaf: deeper.length === 0,
    };
  });
  return rows.sort((a, b) => b.total - a.total);
}

// Events by key, in two passes and one array.
/** @param {Uint32Array} events @param {(event: number) => number} keyOf @returns {[number, Uint32Array][]} */
function partition(events, keyOf) {
  const keys = new Uint32Array(events.length);
  /** @type {Map<number, number>} */
  const counts = new Map();
  for (let at = 0; at < events.length; at += 1) {
    keys[at] = keyOf(events[at]);
    counts.set(keys[at], (counts.get(keys[at]) ?? 0) + 1);
  }
  /** @type {Map<number, { events: Uint32Array, next: number }>} */
  const parts = new Map();
  for (const [key, count] of counts) parts.set(key, { events: new Uint32Array(count), next: 0 });
  for (let at = 0; at < events.length; at += 1) {
    const part = parts.get(keys[at]);
    if (!part) continue;
    part.events[part.next] = events[at];
    part.next += 1;
  }
  return [...parts].map(([key, part]) => [key, part.events]);
}

// What was measured of a group.
/** @param {Recording} recording @param {Uint32Array} all @param {number} wall */
function summary(recording, all, wall) {
  const { duration, uncharged } = recording.columns;
  // What a call took that only starts a copy is not what the copy took: it counts where nothing else does.
  const own = all.every((event) => !recording.isUntimed(event)) ? all : all.filter((event) => !recording.isUntimed(event));
  const isTimed = own.length > 0;
  const timed = isTimed ? own : all;
  // Whole numbers sort faster, and most recordings have no others.
  const durations = duration instanceof Float64Array ? new Float64Array(timed.length) : new Uint32Array(timed.length);
  let [moved, flops, rated] = [0, 0, true];
  for (let at = 0; at < timed.length; at += 1) {
    durations[at] = duration[timed[at]] - uncharged[timed[at]];
    moved += recording.moved(timed[at]);
    flops += recording.flops(timed[at]);
    rated &&= recording.hasRate(timed[at]);
  }
  durations.sort();
  let total = 0;
  for (let at = 0; at < durations.length; at += 1) total += durations[at];
  return {
    count: all.length,
    timed: timed.length,
    total,
    isTimed,
    estimated: 0,
    /** @type {number | null} */
    error: null,
    share: wall > 0 && isTimed ? total / wall : 0,
    average: timed.length > 0 ? total / timed.length : 0,
    min: durations[0] ?? 0,
    p50: percentile(durations, 50),
    p95: percentile(durations, 95),
    max: durations[durations.length - 1] ?? 0,
    moved: Number.isNaN(moved) ? null : moved,
    flops: Number.isNaN(flops) ? null : flops,
    bandwidth: rated ? per(moved, total) : null,
    compute: rated ? per(flops, total) : null,
  };
}

// An amount per time; null for what is unknown or nothing.
/** @param {number} amount @param {number} total */
function per(amount, total) {
  return amount > 0 && total > 0 ? amount / total : null;
}

// Ops by the time they took, longest first.
/** @param {Recording} recording */
export function opsByTime(recording) {
  const totals = new Float64Array(recording.opNames.length);
  for (let event = 0; event < recording.count; event += 1) totals[recording.op(event)] += recording.charged(event);
  return [...totals.keys()].sort((a, b) => totals[b] - totals[a]);
}

// The smallest value that at least `percent` of the sorted values do not exceed.
/** @param {Column} sorted @param {number} percent */
function percentile(sorted, percent) {
  const rank = Math.max(Math.ceil((sorted.length * percent) / 100), 1);
  return sorted[rank - 1] ?? 0;
}

// Whether an event belongs to a row.
/** @param {Recording} recording @param {Path} path @returns {Question} */
export function matches(recording, path) {
  const tests = path.map(({ level, key }) => ({ keyOf: KEYS[level](recording), key }));
  return (event) => tests.every(({ keyOf, key }) => keyOf(event) === key);
}
