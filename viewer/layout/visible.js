// What of a lane can be seen: bars of at least a pixel, and for the pixels that many events
// share one bar with the longest of them and how much of the pixel they fill. The work
// depends on the pixels, not on the events: blocks of events are passed over at once.

import { BLOCK } from "./lanes.js";

// Calls `emit(x, width, at, count, filled, from)` for each bar: `at` is the place in the lane of
// what it shows, `from` the first of the `count` places that it stands for.
/** @param {Lane} lane @param {Span} view @param {number} width @param {(x: number, width: number, at: number, count: number, filled: number, from: number) => void} emit */
export function visibleBars(lane, view, width, emit) {
  const scale = width / (view.end - view.start);
  let at = firstVisible(lane, view.start);
  while (at < lane.starts.length && lane.starts[at] < view.end) {
    const x = (lane.starts[at] - view.start) * scale;
    const wide = lane.durations[at] * scale;
    if (wide >= 1) {
      const left = Math.max(x, -4);
      emit(left, Math.min(x + wide, width + 4) - left, at, 1, 1, at);
      at += 1;
      continue;
    }
    const pixel = Math.max(Math.floor(x), 0);
    const next = endOfPixel(lane, at, view.start + (pixel + 1) / scale, scale);
    const { longest, busy } = sharing(lane, at, next);
    emit(pixel, 1, longest, next - at, Math.min(busy * scale, 1), at);
    at = next;
  }
}

// The place in the lane of what is drawn at `x`; -1 for nothing.
/** @param {Lane} lane @param {Span} view @param {number} width @param {number} x */
export function placeAt(lane, view, width, x) {
  const perPixel = (view.end - view.start) / width;
  const time = view.start + x * perPixel;
  const at = lowerBound(lane.starts, time, 0) - 1;
  if (at >= 0 && lane.starts[at] + lane.durations[at] > time) return at;
  // Short ones are as easy to hit as a bar of a few pixels.
  const from = firstVisible(lane, time - 2 * perPixel);
  const to = lowerBound(lane.starts, time + 2 * perPixel, from);
  return from < to ? sharing(lane, from, to).longest : -1;
}

/** @param {Lane} lane @param {number} time */
function firstVisible(lane, time) {
  const at = lowerBound(lane.starts, time, 0);
  return at > 0 && lane.starts[at - 1] + lane.durations[at - 1] > time ? at - 1 : at;
}

/** @param {Lane} lane @param {number} at @param {number} time @param {number} scale */
function endOfPixel(lane, at, time, scale) {
  const next = Math.max(lowerBound(lane.starts, time, at), at + 1);
  // The last one may reach into the next pixels: then it has a bar of its own.
  return next - 1 > at && lane.durations[next - 1] * scale >= 1 ? next - 1 : next;
}

// The longest of the places from `from` to before `to`, and the sum of their durations.
/** @param {Lane} lane @param {number} from @param {number} to */
function sharing(lane, from, to) {
  let [longest, busy, at] = [from, 0, from];
  /** @param {number} place */
  const consider = (place) => {
    if (lane.durations[place] > lane.durations[longest]) longest = place;
  };
  while (at < to) {
    if (at % BLOCK === 0 && at + BLOCK <= to) {
      consider(lane.longest[at / BLOCK]);
      busy += lane.busy[at / BLOCK];
      at += BLOCK;
    } else {
      consider(at);
      busy += lane.durations[at];
      at += 1;
    }
  }
  return { longest, busy };
}

// The first place from `from` whose value is not below `value`.
/** @param {ArrayLike<number>} sorted @param {number} value @param {number} from */
export function lowerBound(sorted, value, from) {
  let [low, high] = [from, sorted.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}
