// GFLOP/s over operations per byte, a dot for each op and shape. The roof is the best
// bandwidth and the best computing rate that the recording itself reached.

import { statistics } from "../data/statistics.js";
import { duration, significant } from "../data/units.js";
import { prepare, theme } from "../draw/canvas.js";
import { colourOfName } from "../layout/colours.js";
import { element } from "./element.js";

const MARGIN = { left: 64, right: 24, top: 16, bottom: 40 };

export function rooflinePanel(scene, store) {
  const canvas = element("canvas", { class: "roofline", role: "img", "aria-label": "Computing rate over operations per byte" });
  const told = element("p", { class: "faint" });
  let places = [];
  const update = () => {
    const dots = allDots(scene.recording, store.state.range);
    places = draw(canvas, dots);
  };
  canvas.addEventListener("pointermove", ({ offsetX, offsetY }) => {
    const near = places.filter(({ x, y, r }) => Math.hypot(x - offsetX, y - offsetY) < r + 3);
    told.textContent = near.length > 0 ? near[0].dot.text : "Each dot is an op with a shape; its size is its share of the time. Point at one.";
  });
  canvas.addEventListener("click", ({ offsetX, offsetY }) => {
    const near = places.find(({ x, y, r }) => Math.hypot(x - offsetX, y - offsetY) < r + 3);
    if (near) store.update({ highlight: { path: near.dot.path, name: near.dot.text } });
  });
  told.textContent = "Each dot is an op with a shape; its size is its share of the time. Point at one.";
  return { panel: element("div", {}, told, canvas), update };
}

function allDots(recording, range) {
  const { rows } = statistics(recording, "op", range, null);
  const shapes = rows.flatMap((op) => op.children().flatMap((backend) => backend.children().map((shape) => ({ op, backend, shape }))));
  return shapes
    .filter(({ shape }) => shape.flops > 0 && shape.moved > 0 && shape.total > 0)
    .map(({ op, backend, shape }) => ({
      intensity: shape.flops / shape.moved,
      compute: shape.flops / shape.total,
      bandwidth: shape.moved / shape.total,
      share: shape.share,
      path: shape.path,
      colour: colourOfName(op.name),
      text: `${op.name} on ${backend.name} ${shape.name}: ${significant(shape.flops / shape.total)} GFLOP/s, ${significant(shape.moved / shape.total)} GB/s, ${duration(shape.total)}`,
    }));
}

function draw(canvas, dots) {
  const { context, width, height } = prepare(canvas);
  if (dots.length === 0) return [];
  const colours = theme();
  const best = { compute: Math.max(...dots.map((dot) => dot.compute)), bandwidth: Math.max(...dots.map((dot) => dot.bandwidth)) };
  const x = axis(dots.map((dot) => dot.intensity), MARGIN.left, width - MARGIN.right);
  const y = axis(dots.map((dot) => dot.compute), height - MARGIN.bottom, MARGIN.top);
  context.strokeStyle = colours.line;
  context.fillStyle = colours.faint;
  context.textAlign = "center";
  for (const value of x.ticks) {
    context.strokeRect(x.place(value), MARGIN.top, 0, height - MARGIN.top - MARGIN.bottom);
    context.fillText(String(value), x.place(value), height - MARGIN.bottom + 12);
  }
  context.fillText("operations per byte", width / 2, height - 10);
  context.textAlign = "right";
  for (const value of y.ticks) {
    context.strokeRect(MARGIN.left, y.place(value), width - MARGIN.left - MARGIN.right, 0);
    context.fillText(`${value}`, MARGIN.left - 6, y.place(value));
  }
  context.textAlign = "left";
  context.fillText("GFLOP/s", 4, 8);
  drawRoof(context, x, y, best, colours);
  return dots.sort((a, b) => b.share - a.share).map((dot) => {
    const place = { x: x.place(dot.intensity), y: y.place(dot.compute), r: 3 + Math.sqrt(dot.share) * 16, dot };
    context.globalAlpha = 0.75;
    context.fillStyle = dot.colour;
    context.beginPath();
    context.arc(place.x, place.y, place.r, 0, 2 * Math.PI);
    context.fill();
    context.globalAlpha = 1;
    return place;
  });
}

function drawRoof(context, x, y, { compute, bandwidth }, colours) {
  const ridge = compute / bandwidth;
  context.strokeStyle = colours.accent;
  context.lineWidth = 1.5;
  context.beginPath();
  context.moveTo(x.place(x.low), y.place(x.low * bandwidth));
  context.lineTo(x.place(ridge), y.place(compute));
  context.lineTo(x.place(Math.max(x.high, ridge)), y.place(compute));
  context.stroke();
  context.lineWidth = 1;
  context.fillStyle = colours.accent;
  context.fillText(`best seen: ${significant(bandwidth)} GB/s, ${significant(compute)} GFLOP/s`, x.place(x.low) + 8, y.place(y.high) + 10);
}

// A logarithmic axis over all values, in whole powers of ten.
function axis(values, from, to) {
  const low = 10 ** Math.floor(Math.log10(Math.min(...values)));
  const high = 10 ** Math.max(Math.ceil(Math.log10(Math.max(...values))), Math.log10(low) + 1);
  const place = (value) => from + (Math.log10(value / low) / Math.log10(high / low)) * (to - from);
  const ticks = [];
  for (let power = Math.round(Math.log10(low)); 10 ** power <= high * 1.01; power += 1) ticks.push(Number(`1e${power}`));
  return { low, high, place, ticks };
}
