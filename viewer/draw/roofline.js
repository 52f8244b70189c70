// GFLOP/s over operations per byte, a dot for each op and shape, a roof for each backend.

import { bandwidth, compute } from "../data/units.js";
import { backendColour } from "../layout/colours.js";
import { drawAxes } from "./axes.js";
import { prepare, theme } from "./canvas.js";

/** @typedef {{ intensity: number, compute: number, share: number, path: Path, colour: string, text: string }} Dot */
/** @typedef {Roof & { backend: number, label: string, given: boolean }} NamedRoof */
/** @typedef {ReturnType<typeof axis>} Axis */

const NAME_HEIGHT = 15;
const MARGIN = { left: 84, right: 20, top: 26, bottom: 40 };

// Draws and returns where the dots are.
/** @param {HTMLCanvasElement} canvas @param {Dot[]} dots @param {NamedRoof[]} roofs */
export function drawRoofline(canvas, dots, roofs) {
  const { context, width, height } = prepare(canvas);
  if (dots.length === 0) return [];
  const colours = theme();
  const x = axis([...dots.map((dot) => dot.intensity), ...roofs.map((roof) => roof.compute / roof.bandwidth)], MARGIN.left, width - MARGIN.right);
  const y = axis([...dots.map((dot) => dot.compute), ...roofs.map((roof) => roof.compute)], height - MARGIN.bottom, MARGIN.top);
  drawAxes(context, { ...x, name: "operations per byte", word: String }, { ...y, name: "", word: compute }, { width, height }, MARGIN, colours);
  context.save();
  context.beginPath();
  context.rect(MARGIN.left, 0, width - MARGIN.left, height - MARGIN.bottom);
  context.clip();
  /** @type {number[]} */
  const named = [];
  [...roofs].sort((a, b) => b.compute - a.compute).forEach((roof) => drawRoof(context, x, y, roof, named, colours));
  context.restore();
  return [...dots].sort((a, b) => b.share - a.share).map((dot) => drawDot(context, x, y, dot, colours));
}

/** @param {CanvasRenderingContext2D} context @param {Axis} x @param {Axis} y @param {Dot} dot @param {Theme} colours */
function drawDot(context, x, y, dot, colours) {
  const place = { x: x.place(dot.intensity), y: y.place(dot.compute), r: 3 + Math.sqrt(Math.min(dot.share, 1)) * 16, dot };
  context.globalAlpha = 0.8;
  context.fillStyle = dot.colour;
  context.strokeStyle = colours.back;
  context.lineWidth = 1;
  context.beginPath();
  context.arc(place.x, place.y, place.r, 0, 2 * Math.PI);
  context.fill();
  context.globalAlpha = 1;
  context.stroke();
  return place;
}

// Rising with the bandwidth, level at the computing rate; named at its right end, below the names that
// are there already.
/** @param {CanvasRenderingContext2D} context @param {Axis} x @param {Axis} y @param {NamedRoof} roof @param {number[]} named @param {Theme} colours */
function drawRoof(context, x, y, roof, named, colours) {
  const colour = backendColour(roof.backend);
  const ridge = roof.compute / roof.bandwidth;
  context.strokeStyle = colour;
  context.lineWidth = 2;
  context.setLineDash(roof.given ? [] : [6, 4]);
  context.beginPath();
  context.moveTo(x.place(x.low), y.place(x.low * roof.bandwidth));
  context.lineTo(x.place(ridge), y.place(roof.compute));
  context.lineTo(x.place(x.high), y.place(roof.compute));
  context.stroke();
  context.setLineDash([]);
  context.fillStyle = colours.text;
  context.textAlign = "right";
  let height = y.place(roof.compute) - 8;
  for (const other of named) if (Math.abs(other - height) < NAME_HEIGHT) height = other + NAME_HEIGHT;
  named.push(height);
  context.fillText(`${roof.label}: ${bandwidth(roof.bandwidth)}, ${compute(roof.compute)}`, x.place(x.high) - 4, height);
  context.textAlign = "left";
}

// A logarithmic axis over all values, in whole powers of ten, with room above for names.
/** @param {number[]} values @param {number} from @param {number} to */
function axis(values, from, to) {
  const known = values.filter((value) => value > 0 && Number.isFinite(value));
  const low = 10 ** Math.floor(Math.log10(Math.min(...known)));
  const high = 10 ** Math.max(Math.ceil(Math.log10(Math.max(...known) * 1.5)), Math.log10(low) + 1);
  /** @param {number} value */
  const place = (value) => from + (Math.log10(value / low) / Math.log10(high / low)) * (to - from);
  const ticks = [];
  for (let power = Math.round(Math.log10(low)); 10 ** power <= high * 1.01; power += 1) ticks.push(Number(`1e${power}`));
  return { low, high, place, ticks };
}
