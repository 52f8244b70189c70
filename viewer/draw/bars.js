// The bars of one lane.

import { textOn } from "../layout/colours.js";
import { visibleBars } from "../layout/visible.js";

// A letter's width at the size that bars are labelled with: measuring each text costs more.
const LETTER = 7;
const LABELLED = 28;

export function drawBars(context, row, box, view, look) {
  const { lane } = row;
  let current = "";
  context.globalAlpha = 1;
  visibleBars(lane, view, box.width, (x, width, at, count, filled) => {
    const event = lane.events[at];
    const colour = look.colour(event);
    if (colour !== current) {
      context.fillStyle = colour;
      current = colour;
    }
    // Pixels that are mostly idle are pale, so that gaps show at any distance.
    const alpha = look.alpha * (count === 1 && width > 1 ? 1 : 0.25 + 0.75 * filled);
    if (context.globalAlpha !== alpha) context.globalAlpha = alpha;
    const shown = width > 3 ? width - 0.5 : Math.max(width, 1);
    context.fillRect(box.x + x, box.y + 1, shown, box.height - 2);
    if (lane.waits && width >= 1) drawWait(context, lane, at, box, view);
    if (width > LABELLED && look.labels && box.height > 12) {
      drawLabel(context, look.label(event), textOn(colour), box.x + Math.max(x, 0), Math.min(x + width, box.width) - Math.max(x, 0), box);
      current = "";
    }
  });
  context.globalAlpha = 1;
}

function drawLabel(context, text, colour, x, width, box) {
  const letters = Math.floor((width - 6) / LETTER);
  if (letters < 3) return;
  context.globalAlpha = 1;
  context.fillStyle = colour;
  const cut = text.length > letters ? `${text.slice(0, letters - 1)}…` : text;
  context.fillText(cut, x + 4, box.y + box.height / 2 + 0.5);
}

// Waiting at the barrier follows the work, as a thin line.
function drawWait(context, lane, at, box, view) {
  const scale = box.width / (view.end - view.start);
  const x = (lane.starts[at] + lane.durations[at] - view.start) * scale;
  const width = Math.min(lane.waits[at] * scale, box.width - x);
  if (width >= 0.5) context.fillRect(box.x + x, box.y + box.height / 2 - 1, width, 2);
}
