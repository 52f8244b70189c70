// How much was moved, computed or generated per time, as an area.

import { rates, STEP } from "../layout/counters.js";

// Draws and returns what to write beside the row's name: the highest rate, which is as high as
// the row.
/** @param {CanvasRenderingContext2D} context @param {CounterRow} row @param {Box} box @param {Span} view @param {Theme} colours */
export function drawCounter(context, row, box, view, colours) {
  const steps = rates(row, view, box.width);
  const most = steps.reduce((most, rate) => Math.max(most, rate), 0);
  if (most === 0) return "";
  context.fillStyle = colours.area;
  // Steps of the same height are one rectangle.
  for (let from = 0, to = 0; from < steps.length; from = to) {
    while (to < steps.length && steps[to] === steps[from]) to += 1;
    const tall = (steps[from] / most) * (box.height - 3);
    if (tall > 0) context.fillRect(box.x + from * STEP, box.y + box.height - 1 - tall, (to - from) * STEP, tall);
  }
  return row.levels ? row.words(most) : `to ${row.words(most)}`;
}
