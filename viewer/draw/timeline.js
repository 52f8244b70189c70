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
  const whole = { x: GUTTER, y: RULER, width: size.width - GUTTER, height: size.height - RULER };
  for (const gap of scene.recording.unrecorded) drawUnrecorded(context, whole, gap, state.view, colours);
}

const HATCH = 8;

// Hatched from top to bottom: nothing is known of this time.
/** @param {CanvasRenderingContext2D} context @param {Box} box @param {Unrecorded} gap @param {Span} view @param {Theme} colours */
function drawUnrecorded(context, box, gap, view, colours) {
  /** @param {number} time */
  const toX = (time) => box.x + ((time - view.start) / (view.end - view.start)) * box.width;
  const [left, right] = [Math.max(toX(gap.start), box.x), Math.min(toX(gap.end), box.x + box.width)];
  if (right <= left) return;
  const bottom = box.y + box.height;
  context.save();
  context.beginPath();
  context.rect(left, box.y, right - left, box.height);
  context.clip();
  context.strokeStyle = colours.line;
  context.lineWidth = 1;
  context.beginPath();
  for (let x = left - box.height; x < right; x += HATCH) {
    context.moveTo(x, bottom);
    context.lineTo(x + box.height, box.y);
  }
  context.stroke();
  context.fillStyle = colours.faint;
  const text = gap.runs === null ? "not there" : gap.runs === 0 ? "not recorded" : `not recorded: ${count(gap.runs)} graph ${gap.runs === 1 ? "run" : "runs"}`;
  if (context.measureText(text).width + 12 < right - left) context.fillText(text, left + 6, box.y + 10);
  context.restore();
}

// What is missing of one process is hatched in the rows of its work.
/** @param {CanvasRenderingContext2D} context @param {PlacedRow} row @param {Box} box @param {Recording} recording @param {Span} view @param {Theme} colours */
function drawOwnUnrecorded(context, row, box, recording, view, colours) {
  const process = row.process ?? recording.backends[row.backend ?? -1]?.process ?? null;
  if (process === null) return;
  /** @param {Unrecorded} gap */
  const isOfAll = (gap) => recording.unrecorded.some(({ start, end }) => start <= gap.start && end >= gap.end);
  for (const gap of recording.unrecordedOf(process)) if (!isOfAll(gap)) drawUnrecorded(context, box, gap, view, colours);
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
  if (row.lane) drawOwnUnrecorded(context, row, box, scene.recording, state.view, colours);
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
  // A rate's unit tells which one it is.
  const own = row.kind === "counter" && !row.levels && remark !== "" ? "" : row.shown ?? row.label;
  const apart = row.kind === "counter" ? [row.of, own].filter(Boolean).join(" ") : row.label;
  const label = row.pinned ? apart : own;
  if (label + remark !== "") {
    context.fillStyle = isGroup ? colours.panel : colours.back;
    context.fillRect(0, box.y, GUTTER, height);
  }
  context.fillStyle = isGroup ? colours.text : colours.faint;
  const mark = isGroup || row.kind === "fold" ? (row.collapsed ? "▸ " : "▾ ") : row.pinned ? "◆ " : "";
  const left = isGroup || row.pinned ? 6 : 20;
  // The name of a band has the whole width.
  const room = isBand ? Infinity : GUTTER - left - (remark === "" ? 2 : context.measureText(remark).width + 12);
  if (isBand) context.font = `bold ${context.font}`;
  context.fillText(fitting(context, mark + label, room), left, box.y + height / 2);
  if (isBand) context.font = context.font.replace("bold ", "");
  context.textAlign = "right";
  context.fillText(remark, GUTTER - 8, box.y + box.height / 2);
  context.textAlign = "left";
  if (row.joined) return;
  context.fillStyle = colours.line;
  context.fillRect(0, box.y + box.height - 0.5, box.x + box.width, 0.5);
}

/** @param {CanvasRenderingContext2D} context @param {string} text @param {number} room */
function fitting(context, text, room) {
  if (context.measureText(text).width <= room) return text;
  let letters = text.length;
  while (letters > 0 && context.measureText(`${text.slice(0, letters)}…`).width > room) letters -= 1;
  return `${text.slice(0, letters)}…`;
}
