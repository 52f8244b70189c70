// Times over the length of the context: a dot for each graph run, a line along its slope, and a mark
// where attention is computed otherwise.

import { count, duration } from "../data/units.js";
import { drawAxes } from "./axes.js";
import { prepare, theme } from "./canvas.js";

/** @typedef {{ depth: number, ns: number, run: Span, colour: string, text: string }} DepthDot */
/** @typedef {{ colour: string, from: [number, number], to: [number, number] }} DepthLine */
/** @typedef {ReturnType<typeof axis>} DepthAxis */

const MARGIN = { left: 64, right: 20, top: 26, bottom: 40 };

// Draws and returns where the dots are.
/** @param {HTMLCanvasElement} canvas @param {DepthDot[]} dots @param {DepthLine[]} lines @param {{ depth: number, text: string }[]} steps */
export function drawDepth(canvas, dots, lines, steps) {
  const { context, width, height } = prepare(canvas);
  if (dots.length === 0) return [];
  const colours = theme();
  const x = axis(dots.reduce((most, dot) => Math.max(most, dot.depth), 0), MARGIN.left, width - MARGIN.right);
  const y = axis(usualMost(dots.map((dot) => dot.ns)), height - MARGIN.bottom, MARGIN.top);
  drawAxes(context, { ...x, name: "tokens of context", word: count }, { ...y, name: "for each token", word: duration }, { width, height }, MARGIN, colours);
  steps.forEach((step, at) => drawStep(context, x, step, at, height, colours));
  context.save();
  context.beginPath();
  context.rect(MARGIN.left, MARGIN.top, width - MARGIN.left - MARGIN.right, height - MARGIN.top - MARGIN.bottom);
  context.clip();
  const places = dots.map((dot) => drawDot(context, x, y, dot));
  lines.forEach((line) => drawLine(context, x, y, line));
  context.restore();
  return places;
}

/** @param {CanvasRenderingContext2D} context @param {DepthAxis} x @param {DepthAxis} y @param {DepthDot} dot */
function drawDot(context, x, y, dot) {
  const place = { x: x.place(dot.depth), y: y.place(dot.ns), dot };
  context.globalAlpha = 0.8;
  context.fillStyle = dot.colour;
  context.beginPath();
  context.arc(place.x, place.y, 2.5, 0, 2 * Math.PI);
  context.fill();
  context.globalAlpha = 1;
  return place;
}

/** @param {CanvasRenderingContext2D} context @param {DepthAxis} x @param {DepthAxis} y @param {DepthLine} line */
function drawLine(context, x, y, { colour, from, to }) {
  context.strokeStyle = colour;
  context.lineWidth = 2;
  context.beginPath();
  context.moveTo(x.place(from[0]), y.place(from[1]));
  context.lineTo(x.place(to[0]), y.place(to[1]));
  context.stroke();
  context.lineWidth = 1;
}

/** @param {CanvasRenderingContext2D} context @param {DepthAxis} x @param {{ depth: number, text: string }} step @param {number} at @param {number} height @param {Theme} colours */
function drawStep(context, x, { depth, text }, at, height, colours) {
  context.strokeStyle = colours.accent;
  context.setLineDash([4, 4]);
  context.strokeRect(x.place(depth), MARGIN.top, 0, height - MARGIN.top - MARGIN.bottom);
  context.setLineDash([]);
  context.fillStyle = colours.text;
  context.textAlign = "left";
  // One below the other, so that steps that are close do not hide each other's words.
  context.fillText(`from ${count(depth)} on: ${text}`, x.place(depth) + 4, MARGIN.top + 8 + 14 * at);
}

// The longest time, or less if a few are so much longer that they would press the rest to the bottom.
/** @param {number[]} values */
export function usualMost(values) {
  const sorted = Float64Array.from(values).sort();
  const usual = sorted[Math.floor((sorted.length - 1) * 0.75)];
  return Math.min(sorted[sorted.length - 1], usual * 3);
}

// An axis from zero with four to eight round steps; what lies beyond its end is drawn at it.
/** @param {number} most @param {number} from @param {number} to */
function axis(most, from, to) {
  most = Math.max(most, 1);
  const size = 10 ** Math.floor(Math.log10(most));
  const step = [0.2, 0.5, 1, 2].map((factor) => factor * size).find((one) => most / one <= 8) ?? size;
  const high = Math.ceil(most / step) * step;
  /** @param {number} value */
  const place = (value) => from + (Math.min(value, high) / high) * (to - from);
  const ticks = [];
  for (let at = 0; at * step <= high * 1.001; at += 1) ticks.push(at * step);
  return { high, place, ticks };
}
