// The ops of a fusion, named inside its bar. They were measured together: each name is as wide
// as its text, so that nobody takes the widths for times.

import { colourOfName, textOn } from "../layout/colours.js";

const GAP = 3;
const PADDING = 4;
const LOWEST = 20;

// Whether there was room for all names.
/** @param {CanvasRenderingContext2D} context @param {string[]} parts @param {string} colour @param {Box} box */
export function drawParts(context, parts, colour, { x, y, width, height }) {
  if (height < LOWEST) return false;
  const wide = parts.map((part) => context.measureText(part).width + 2 * PADDING);
  const all = wide.reduce((sum, one) => sum + one + GAP, GAP);
  if (all > width - 2) return false;
  let left = x + GAP + 1;
  parts.forEach((part, at) => {
    const own = colourOfName(part);
    context.fillStyle = own;
    context.strokeStyle = textOn(colour);
    context.lineWidth = 1;
    context.beginPath();
    context.roundRect(left + 0.5, y + 3.5, wide[at] - 1, height - 7, 4);
    context.fill();
    context.stroke();
    context.fillStyle = textOn(own);
    context.fillText(part, left + PADDING, y + height / 2 + 0.5);
    left += wide[at] + GAP;
  });
  return true;
}
