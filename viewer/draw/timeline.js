// The whole timeline: ruler, rows, names of rows.

import { duration, percent } from "../data/units.js";
import { PHASE_COLOURS } from "../layout/colours.js";
import { topOf } from "../layout/rows.js";
import { drawBars } from "./bars.js";
import { drawCounter } from "./counter.js";
import { GUTTER, prepare, RULER, theme } from "./canvas.js";
import { drawRuler } from "./ruler.js";

export function drawTimeline(canvas, scene, state) {
  const size = prepare(canvas);
  const colours = theme();
  const { context } = size;
  drawRuler(context, size, state.view, colours);
  const fixed = scene.rows.filter((row) => row.fixed);
  const moving = scene.rows.filter((row) => !row.fixed);
  drawRows(size, fixed, RULER, scene, state, colours);
  drawRows(size, moving, RULER + scene.fixed, scene, state, colours);
}

// Draws rows, as far as they are below `top`.
function drawRows({ context, width, height }, rows, top, scene, state, colours) {
  context.save();
  context.beginPath();
  context.rect(0, top, width, Math.max(height - top, 0));
  context.clip();
  for (const row of rows) {
    const box = { x: GUTTER, y: RULER + topOf(row, state.scroll), width: width - GUTTER, height: row.height };
    if (box.y + box.height < top || box.y > height) continue;
    drawRow(context, row, box, scene, state, colours);
    drawName(context, row, box, colours);
  }
  context.restore();
}

function drawRow(context, row, box, scene, state, colours) {
  context.save();
  context.beginPath();
  context.rect(box.x, box.y, box.width, box.height);
  context.clip();
  if (row.kind === "phases") drawPhases(context, box, scene.recording, state.view);
  else if (row.kind === "runs") drawRuns(context, box, scene.recording, state.view, colours);
  else if (row.kind === "group") drawGroup(context, row, box, colours);
  else if (row.kind === "counter") drawCounter(context, row, box, state.view, colours);
  else drawLane(context, row, box, scene, state);
  context.restore();
}

// Where something is searched or clicked in a table, all else steps back.
function drawLane(context, row, box, scene, state) {
  const look = { colour: scene.colour, label: scene.label, labels: true, alpha: 1 };
  const matching = scene.matching(row);
  if (!matching) {
    drawBars(context, row, box, state.view, look);
    return;
  }
  drawBars(context, row, box, state.view, { ...look, labels: false, alpha: 0.15 });
  drawBars(context, { lane: matching }, box, state.view, look);
}

function drawPhases(context, box, { phases }, view) {
  const scale = box.width / (view.end - view.start);
  for (const phase of phases) {
    const x = (phase.start - view.start) * scale;
    const width = Math.max((phase.end - phase.start) * scale, 1);
    if (x > box.width || x + width < 0) continue;
    context.fillStyle = PHASE_COLOURS[phase.kind];
    context.fillRect(box.x + x, box.y + 2, Math.max(width - 0.5, 1), box.height - 4);
    const left = Math.max(x, 0);
    const text = phase.rate ? `${phase.label} · ${phase.rate.toFixed(1)} tokens/s` : phase.label;
    const shown = [text, phase.label].find((text) => context.measureText(text).width + 10 < Math.min(x + width, box.width) - left);
    context.fillStyle = "#000";
    if (shown) context.fillText(shown, box.x + left + 5, box.y + box.height / 2);
  }
}

function drawRuns(context, box, { runs, phases }, view, colours) {
  const scale = box.width / (view.end - view.start);
  let last = -1;
  for (let run = 0; run < runs.start.length; run += 1) {
    const x = (runs.start[run] - view.start) * scale;
    const width = (runs.end[run] - runs.start[run]) * scale;
    const pixel = Math.floor(x + width);
    if (x > box.width || x + width < 0 || pixel === last) continue;
    last = pixel;
    context.globalAlpha = run % 2 === 0 ? 0.75 : 0.5;
    context.fillStyle = PHASE_COLOURS[phases[runs.phase[run]]?.kind ?? 3];
    context.fillRect(box.x + x, box.y + 2, Math.max(width - 0.5, 0.5), box.height - 4);
    const left = Math.max(x, 0);
    const text = `run ${run} · ${duration(runs.end[run] - runs.start[run])}`;
    context.globalAlpha = 1;
    context.fillStyle = colours.text;
    if (Math.min(x + width, box.width) - left > 110) context.fillText(text, box.x + left + 4, box.y + box.height / 2);
  }
  context.globalAlpha = 1;
}

function drawGroup(context, row, box, colours) {
  const { busy, copying, idle } = row.group.backend;
  const wall = busy + copying + idle;
  context.fillStyle = colours.panel;
  context.fillRect(box.x, box.y, box.width, box.height);
  if (!(wall > 0)) return;
  context.fillStyle = colours.faint;
  const parts = [`computing ${percent(busy / wall)}`, `copying ${percent(copying / wall)}`, `idle ${percent(idle / wall)}`];
  context.fillText(parts.join("   "), box.x + 6, box.y + box.height / 2);
}

function drawName(context, row, box, colours) {
  const isGroup = row.kind === "group";
  context.fillStyle = isGroup ? colours.panel : colours.back;
  context.fillRect(0, box.y, GUTTER, box.height);
  context.fillStyle = isGroup ? colours.text : colours.faint;
  const mark = isGroup ? (row.collapsed ? "▸ " : "▾ ") : row.pinned ? "◆ " : "";
  const name = row.label.length > 18 ? `${row.label.slice(0, 17)}…` : row.label;
  context.fillText(mark + name, isGroup ? 6 : 20, box.y + box.height / 2);
  context.fillStyle = colours.line;
  context.fillRect(0, box.y + box.height - 0.5, box.x + box.width, 0.5);
}
