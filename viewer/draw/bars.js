// The bars of one lane. `look` says how: `colour`, `label` and, of fused ops, `parts` of a thing;
// `alpha` for all and `shade` for single ones; `labels` whether there is text.

import { textOn } from "../layout/colours.js";
import { visibleBars } from "../layout/visible.js";
import { drawParts } from "./parts.js";

const LABELLED = 28;
const LOWEST_SKYLINE = 12;
const FEWEST_LETTERS = 3;

/** @param {CanvasRenderingContext2D} context @param {Lane} lane @param {Box} box @param {Span} view @param {Look} look */
export function drawBars(context, lane, box, view, look) {
  let current = "";
  context.globalAlpha = 1;
  visibleBars(lane, view, box.width, (x, width, at, count, filled) => {
    const thing = lane.events[at];
    const colour = look.colour(thing);
    if (colour !== current) {
      context.fillStyle = colour;
      current = colour;
    }
    // Pixels that are mostly idle are low, so that gaps show at any distance and colours stay what they
    // are. Bars of thin lanes are higher, or nobody would see them.
    const alone = count === 1 && width > 1;
    const low = box.height < LOWEST_SKYLINE;
    const alpha = look.alpha * (alone ? look.shade?.(thing) ?? 1 : 1);
    if (context.globalAlpha !== alpha) context.globalAlpha = alpha;
    const shown = width > 3 ? width - 0.5 : Math.max(width, 1);
    const inset = low ? 0.5 : 1;
    const most = box.height - 2 * inset;
    const least = low ? 0.6 : 0.3;
    const high = alone ? most : Math.max(most * (least + (1 - least) * filled), 2);
    context.fillRect(box.x + x, box.y + inset + most - high, shown, high);
    if (lane.waits && width >= 1) drawWait(context, lane, lane.waits, at, box, view);
    if (width > LABELLED && look.labels && box.height > 12) {
      const left = Math.max(x, 0);
      const place = { x: box.x + left, width: Math.min(x + width, box.width) - left, y: box.y, height: box.height };
      context.globalAlpha = 1;
      const parts = look.parts?.(thing) ?? [];
      if (parts.length === 0 || !drawParts(context, parts, colour, place)) drawLabel(context, look.label(thing), textOn(colour), place);
      current = "";
    }
  });
  context.globalAlpha = 1;
}

// The first text that fits; else the last, cut. `texts` is one text or several.
/** @param {CanvasRenderingContext2D} context @param {string | string[]} texts @param {string} colour @param {Box} box */
function drawLabel(context, texts, colour, { x, y, width, height }) {
  const room = width - 8;
  const all = [texts].flat();
  const text = all.find((text) => context.measureText(text).width <= room) ?? cut(context, all[all.length - 1], room);
  context.fillStyle = colour;
  context.fillText(text, x + 4, y + height / 2 + 0.5);
}

/** @param {CanvasRenderingContext2D} context @param {string} text @param {number} room */
function cut(context, text, room) {
  const letters = Math.floor((text.length * room) / context.measureText(text).width) - 1;
  return letters < FEWEST_LETTERS ? "" : `${text.slice(0, letters)}…`;
}

// Waiting at the barrier follows the work, as a thin line.
/** @param {CanvasRenderingContext2D} context @param {Lane} lane @param {Float64Array} waits @param {number} at @param {Box} box @param {Span} view */
function drawWait(context, lane, waits, at, box, view) {
  const scale = box.width / (view.end - view.start);
  const x = (lane.starts[at] + lane.durations[at] - view.start) * scale;
  const width = Math.min(waits[at] * scale, box.width - x);
  if (width >= 0.5) context.fillRect(box.x + x, box.y + box.height / 2 - 1, width, 2);
}
