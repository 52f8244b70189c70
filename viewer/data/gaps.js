// The largest times in which a backend did nothing, with what ran before and after.

const SHOWN = 50;

// In the range, as far as it reaches; in the whole recording without one.
/** @param {Recording} recording @param {Span | null} range */
export function largestGaps(recording, range) {
  const { backend } = recording.columns;
  const [from, to] = range ? [range.start, range.end] : [0, Infinity];
  /** @type {({ event: number, end: number } | null)[]} */
  const last = recording.backends.map(() => null);
  /** @type {Gap[]} */
  const gaps = [];
  eachBusy(recording, (event, start, end) => {
    const before = last[backend[event]];
    const gap = before && { start: Math.max(before.end, from), end: Math.min(start, to), backend: backend[event], before: before.event, after: event };
    if (gap && gap.end > gap.start && !isUnrecorded(recording, gap)) keep(gaps, gap);
    if (!before || end > before.end) last[backend[event]] = { event, end };
  });
  return gaps.sort((a, b) => length(b) - length(a)).slice(0, SHOWN);
}

// Calls `take(event, start, end)` for each time in which something was done, by start: events,
// or their kernels where these are known, because between them nothing is done.
/** @param {Recording} recording @param {(event: number, start: number, end: number) => void} take */
function eachBusy(recording, take) {
  const { device } = recording;
  let work = 0;
  for (let event = 0; event <= recording.count; event += 1) {
    const until = event < recording.count ? recording.start(event) : Infinity;
    for (; work < device.count && device.start(work) <= until; work += 1) take(device.event(work), device.start(work), device.end(work));
    if (event < recording.count && device.of(event).length === 0) take(event, recording.start(event), recording.end(event));
  }
}

// Whether nobody knows what was done in the middle of it.
/** @param {Recording} recording @param {Gap} gap */
function isUnrecorded(recording, gap) {
  return recording.unrecordedOf(recording.backends[gap.backend].process).some(({ start, end }) => start < gap.end && end > gap.start);
}

// Sorting now and then keeps the list short without sorting for every gap.
/** @param {Gap[]} gaps @param {Gap} gap */
function keep(gaps, gap) {
  gaps.push(gap);
  if (gaps.length < 20 * SHOWN) return;
  gaps.sort((a, b) => length(b) - length(a));
  gaps.length = SHOWN;
}

/** @param {Span} gap */
function length(gap) {
  return gap.end - gap.start;
}
