// What changes with every movement of the pointer, above the timeline: the line at the
// pointer, frames around hovered and selected events, the range, arrows from copies to ops.

import { duration } from "../data/units.js";
import { topOf } from "../layout/rows.js";
import { GUTTER, prepare, RULER, theme } from "./canvas.js";

/** @param {HTMLCanvasElement} canvas @param {Scene} scene @param {State} state */
export function drawOverlay(canvas, scene, state) {
  const { context, width, height } = prepare(canvas);
  const colours = theme();
  /** @type {Place} */
  const place = { context, width, height, colours, toX: (time) => GUTTER + ((time - state.view.start) / (state.view.end - state.view.start)) * (width - GUTTER) };
  context.beginPath();
  context.rect(GUTTER, 0, width - GUTTER, height);
  context.clip();
  if (state.range) drawRange(place, state.range);
  if (state.gap) drawGap(place, scene, state.gap, state.scroll);
  if (state.selected >= 0) {
    frameEvent(place, scene, state, state.selected, colours.select, 2);
    if (state.work >= 0) frameWork(place, scene, state, colours.select);
    for (const [copy, op] of scene.linksOf(state.selected)) arrow(place, scene, state, copy, op);
  }
  if (!state.hovered) return;
  context.fillStyle = colours.faint;
  context.fillRect(Math.round(state.hovered.x), 0, 1, height);
  if (state.hovered.event >= 0) frameEvent(place, scene, state, state.hovered.event, colours.text, 1);
}

/** @param {Place} place @param {Span} range */
function drawRange({ context, width, height, colours, toX }, { start, end }) {
  const [left, right] = [toX(start), toX(end)];
  context.globalAlpha = 0.14;
  context.fillStyle = colours.accent;
  context.fillRect(left, 0, right - left, height);
  context.globalAlpha = 1;
  context.fillRect(left, 0, 1, height);
  context.fillRect(right, 0, 1, height);
  context.textAlign = "center";
  context.font = `600 ${context.font}`;
  const text = duration(end - start);
  // In the middle of what is in sight, and instead of the ruler's own words.
  const middle = (Math.max(left, GUTTER) + Math.min(right, width)) / 2;
  const wide = context.measureText(text).width + 12;
  context.fillStyle = colours.panel;
  context.fillRect(middle - wide / 2, 2, wide, RULER - 4);
  context.fillStyle = colours.accent;
  context.fillText(text, middle, RULER / 2);
  context.textAlign = "left";
}

// An idle time: a frame over the rows of its backend.
/** @param {Place} place @param {Scene} scene @param {Gap} gap @param {number} scroll */
function drawGap({ context, colours, toX }, scene, gap, scroll) {
  const rows = scene.rows.filter((row) => !row.fixed && (row.backend === gap.backend || row.key === String(gap.backend)));
  if (rows.length === 0) return;
  const [first, last] = [rows[0], rows[rows.length - 1]];
  const [left, right] = [toX(gap.start), toX(gap.end)];
  const [top, bottom] = [Math.max(topOf(first, scroll), scene.fixed), topOf(last, scroll) + last.height];
  if (bottom <= top) return;
  context.strokeStyle = colours.select;
  context.lineWidth = 1.5;
  context.setLineDash([5, 3]);
  context.strokeRect(left, RULER + top + 1, Math.max(right - left, 2), bottom - top - 2);
  context.setLineDash([]);
  context.fillStyle = colours.select;
  const text = `idle ${duration(gap.end - gap.start)}`;
  if (context.measureText(text).width + 8 < right - left) context.fillText(text, Math.max(left, GUTTER) + 5, RULER + top + first.height / 2);
}

/** @param {Place} place @param {Scene} scene @param {State} state @param {number} event @param {string} colour @param {number} thickness */
function frameEvent(place, scene, state, event, colour, thickness) {
  const { recording } = scene;
  frame(place, scene, state, scene.rowOf(event), recording.start(event), recording.end(event), colour, thickness);
}

/** @param {Place} place @param {Scene} scene @param {State} state @param {string} colour */
function frameWork(place, scene, state, colour) {
  const { device } = scene.recording;
  frame(place, scene, state, scene.rowOfWork(state.work), device.start(state.work), device.end(state.work), colour, 2);
}

/** @param {Place} place @param {Scene} scene @param {State} state @param {PlacedRow | undefined} row @param {number} start @param {number} end @param {string} colour @param {number} thickness */
function frame({ context, toX }, scene, state, row, start, end, colour, thickness) {
  if (!row) return;
  const left = toX(start);
  const width = Math.max(toX(end) - left, 2);
  const top = topOf(row, state.scroll);
  // Scrolled behind the rows that stay.
  if (!row.fixed && top + row.height / 2 < scene.fixed) return;
  context.strokeStyle = colour;
  context.lineWidth = thickness;
  context.strokeRect(left - 0.5, RULER + top + 0.5, width, row.height - 1);
}

/** @param {Place} place @param {Scene} scene @param {State} state @param {number} copy @param {number} op */
function arrow({ context, toX, colours }, scene, state, copy, op) {
  const [from, to] = [scene.rowOf(copy), scene.rowOf(op)];
  if (!from || !to) return;
  /** @param {PlacedRow} row */
  const middle = (row) => RULER + topOf(row, state.scroll) + row.height / 2;
  const [x, y] = [toX(scene.recording.end(copy)), middle(from)];
  const [tipX, tipY] = [toX(scene.recording.start(op)), middle(to)];
  const bend = Math.max((tipX - x) / 2, 12);
  context.strokeStyle = colours.select;
  context.fillStyle = colours.select;
  context.lineWidth = 1.5;
  context.beginPath();
  context.moveTo(x, y);
  context.bezierCurveTo(x + bend, y, tipX - bend, tipY, tipX - 4, tipY);
  context.stroke();
  context.beginPath();
  context.moveTo(tipX, tipY);
  context.lineTo(tipX - 6, tipY - 3.5);
  context.lineTo(tipX - 6, tipY + 3.5);
  context.fill();
}
