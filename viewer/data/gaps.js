// The largest times in which a backend did nothing, with what ran before and after.

const SHOWN = 50;

export function largestGaps(recording) {
  const { start, duration, backend } = recording.columns;
  const last = recording.backends.map(() => null);
  const gaps = [];
  for (let event = 0; event < recording.count; event += 1) {
    const before = last[backend[event]];
    const end = start[event] + duration[event];
    if (before && start[event] > before.end) keep(gaps, { start: before.end, end: start[event], before: before.event, after: event });
    if (!before || end > before.end) last[backend[event]] = { event, end };
  }
  return gaps.sort((a, b) => length(b) - length(a)).slice(0, SHOWN);
}

// Sorting now and then keeps the list short without sorting for every gap.
function keep(gaps, gap) {
  gaps.push(gap);
  if (gaps.length < 20 * SHOWN) return;
  gaps.sort((a, b) => length(b) - length(a));
  gaps.length = SHOWN;
}

function length(gap) {
  return gap.end - gap.start;
}
