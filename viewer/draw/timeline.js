// The whole timeline: ruler, rows, names of rows.

import { count, percent } from "../data/units.js";
import { isCounter } from "../layout/counters.js";
import { topOf } from "../layout/rows.js";
import { drawBars } from "./bars.js";
import { drawCounter } from "./counter.js";
import { GUTTER, prepare, RULER, theme } from "./canvas.js";
import { drawRuler } from "./ruler.js";

/** @param {HTMLCanvasElement} canvas @param {Scene} scene @param {State} state */
export function drawTimeline(canvas, scene, state) {
  const size = prepare(canvas);
  const colours = theme();
  const { context } = size;
  drawRuler(context, size, state.view, scene.recording.clock, colours);
  const fixed = scene.rows.filter((row) => row.fixed);
  const moving = scene.rows.filter((row) => !row.fixed);
  drawRows(size, fixed, RULER, scene, state, colours);
  drawRows(size, moving, RULER + scene.fixed, scene, state, colours);
  for (const gap of scene.recording.unrecorded) drawUnrecorded(size, gap, state.view, colours);
}

const HATCH = 8;

// Hatched from top to bottom: nothing is known of this time.
/** @param {ReturnType<typeof prepare>} size @param {Span & { runs: number }} gap @param {Span} view @param {Theme} colours */
function drawUnrecorded({ context, width, height }, gap, view, colours) {
  /** @param {number} time */
  const toX = (time) => GUTTER + ((time - view.start) / (view.end - view.start)) * (width - GUTTER);
  const [left, right] = [Math.max(toX(gap.start), GUTTER), Math.min(toX(gap.end), width)];
  if (right <= left) return;
  context.save();
  context.beginPath();
  context.rect(left, RULER, right - left, height - RULER);
  context.clip();
  context.strokeStyle = colours.line;
  context.lineWidth = 1;
  context.beginPath();
  for (let x = left - height; x < right; x += HATCH) {
    context.moveTo(x, height);
    context.lineTo(x + height, 0);
  }
  context.stroke();
  context.fillStyle = colours.faint;
  const text = `not recorded: ${count(gap.runs)} graph ${gap.runs === 1 ? "run" : "runs"}`;
  if (context.measureText(text).width + 12 < right - left) context.fillText(text, left + 6, RULER + 10);
  context.restore();
}

// Draws rows, as far as they are below `top`.
/** @param {ReturnType<typeof prepare>} size @param {PlacedRow[]} rows @param {number} top @param {Scene} scene @param {State} state @param {Theme} colours */
function drawRows({ context, width, height }, rows, top, scene, state, colours) {
  context.save();
  context.beginPath();
  context.rect(0, top, width, Math.max(height - top, 0));
  context.clip();
  for (const row of rows) {
    const box = { x: GUTTER, y: RULER + topOf(row, state.scroll), width: width - GUTTER, height: row.height };
    if (box.y + box.height < top || box.y > height) continue;
    const remark = drawRow(context, row, box, scene, state, colours);
    drawName(context, row, box, remark, colours);
  }
  context.restore();
}

// Draws and returns a remark to write beside the row's name.
/** @param {CanvasRenderingContext2D} context @param {PlacedRow} row @param {Box} box @param {Scene} scene @param {State} state @param {Theme} colours */
function drawRow(context, row, box, scene, state, colours) {
  context.save();
  context.beginPath();
  context.rect(box.x, box.y, box.width, box.height);
  context.clip();
  let remark = "";
  if (row.kind === "group" || row.kind === "band") drawGroup(context, row, box, scene.timesOf(row, state.range), colours);
  else if (isCounter(row)) remark = drawCounter(context, row, box, state.view, colours);
  else drawLane(context, row, box, scene, state);
  context.restore();
  return remark;
}

// Where something is searched or clicked in a table, all else steps back.
/** @param {CanvasRenderingContext2D} context @param {PlacedRow} row @param {Box} box @param {Scene} scene @param {State} state */
function drawLane(context, row, box, scene, state) {
  const look = row.look ?? { colour: scene.colour, label: scene.label, parts: scene.parts, labels: true, alpha: 1 };
  const lane = row.lane ?? row.spans;
  if (!lane) return;
  const matching = row.top ? null : scene.matching(row);
  if (!matching) {
    drawBars(context, lane, box, state.view, look);
    return;
  }
  drawBars(context, lane, box, state.view, { ...look, labels: false, alpha: 0.15 });
  drawBars(context, matching, box, state.view, look);
}

// The times are those of the selected range, or of the whole recording.
/** @param {CanvasRenderingContext2D} context @param {PlacedRow} row @param {Box} box @param {BackendTimes | null} times @param {Theme} colours */
function drawGroup(context, row, box, times, colours) {
  context.fillStyle = colours.panel;
  context.fillRect(box.x, box.y, box.width, box.height);
  if (!times) return;
  const { busy, copying, idle } = times;
  const wall = Math.max(busy + copying + idle, 1);
  context.fillStyle = colours.faint;
  const parts = [`computing ${percent(busy / wall)}`, `copying ${percent(copying / wall)}`, `idle ${percent(idle / wall)}`, times.inRange ? "in the selected range" : ""];
  context.fillText(parts.join("   ").trimEnd(), box.x + 6, box.y + box.height / 2);
}

/** @param {CanvasRenderingContext2D} context @param {PlacedRow} row @param {Box} box @param {string} remark @param {Theme} colours */
function drawName(context, row, box, remark, colours) {
  const isBand = row.kind === "band";
  const isGroup = row.kind === "group" || isBand;
  // Rows that share a height are named once, in the middle of all.
  const height = box.height * (1 + (row.joined ?? 0));
  const label = row.pinned ? row.label : row.shown ?? row.label;
  if (label !== "") {
    context.fillStyle = isGroup ? colours.panel : colours.back;
    context.fillRect(0, box.y, GUTTER, height);
  }
  context.fillStyle = isGroup ? colours.text : colours.faint;
  const mark = isGroup || row.kind === "fold" ? (row.collapsed ? "▸ " : "▾ ") : row.pinned ? "◆ " : "";
  // The name of a band has the whole width.
  const name = label.length > 18 && !isBand ? `${label.slice(0, 17)}…` : label;
  if (isBand) context.font = `bold ${context.font}`;
  context.fillText(mark + name, isGroup ? 6 : 20, box.y + height / 2);
  if (isBand) context.font = context.font.replace("bold ", "");
  context.textAlign = "right";
  context.fillText(remark, GUTTER - 8, box.y + box.height / 2);
  context.textAlign = "left";
  if (row.joined) return;
  context.fillStyle = colours.line;
  context.fillRect(0, box.y + box.height - 0.5, box.x + box.width, 0.5);
}
