// How much a backend moved or computed per time, as an area.

import { significant } from "../data/units.js";
import { visibleBars } from "../layout/visible.js";

// Pixels to a step: areas need no finer ones, and half as many are drawn in half the time.
const STEP = 2;

export function drawCounter(context, row, box, view, colours) {
  const bars = [];
  const perStep = ((view.end - view.start) / box.width) * STEP;
  visibleBars(row.lane, view, box.width / STEP, (x, width, at, count, filled, from) => {
    const amount = row.amounts[from + count] - row.amounts[from];
    const time = count === 1 && width > 1 ? row.lane.durations[at] : perStep;
    bars.push({ x: x * STEP, width: Math.max(width, 1) * STEP, rate: amount / time });
  });
  const most = bars.reduce((most, { rate }) => Math.max(most, rate), 0);
  if (most === 0) return;
  context.fillStyle = colours.area;
  for (const { x, width, rate } of bars) {
    const tall = (rate / most) * (box.height - 2);
    context.fillRect(box.x + x, box.y + box.height - 1 - tall, width, tall);
  }
  drawScale(context, `highest here: ${significant(most)} ${row.label}`, box, colours);
}

function drawScale(context, text, box, colours) {
  const width = context.measureText(text).width + 8;
  context.fillStyle = colours.back;
  context.globalAlpha = 0.8;
  context.fillRect(box.x + box.width - width, box.y, width, 14);
  context.globalAlpha = 1;
  context.fillStyle = colours.faint;
  context.fillText(text, box.x + box.width - width + 4, box.y + 7);
}
