// The ruler on top of the timeline, and the faint lines below it.

import { clockTime } from "../data/units.js";
import { ticks } from "../layout/ticks.js";
import { GUTTER, RULER } from "./canvas.js";

/** @param {CanvasRenderingContext2D} context @param {Size} size @param {Span} view @param {number | null} clock @param {Theme} colours */
export function drawRuler(context, size, view, clock, colours) {
  const width = size.width - GUTTER;
  /** @param {number} time */
  const toX = (time) => GUTTER + ((time - view.start) / (view.end - view.start)) * width;
  context.fillStyle = colours.panel;
  context.fillRect(0, 0, size.width, RULER);
  context.strokeStyle = colours.line;
  context.lineWidth = 1;
  context.beginPath();
  const list = ticks(view, width);
  for (const { time } of list) {
    const x = Math.round(toX(time)) + 0.5;
    context.moveTo(x, RULER - 6);
    context.lineTo(x, size.height);
  }
  context.stroke();
  context.fillStyle = colours.faint;
  context.textAlign = "left";
  for (const { time, label } of list) {
    const left = toX(time) + 4;
    const own = context.measureText(label).width;
    // At the right edge it stands on the other side of its line.
    context.fillText(label, left + own <= size.width ? left : left - own - 8, RULER / 2);
  }
  // What time it was at the left edge.
  if (clock === null) return;
  context.fillStyle = colours.panel;
  context.fillRect(0, 0, GUTTER, RULER);
  context.fillStyle = colours.faint;
  context.fillText(clockTime(clock + view.start / 1e6), 6, RULER / 2);
}
