// The whole recording in a strip: phases, how busy it was, and the part that is shown.

import { PHASE_COLOURS } from "../layout/colours.js";
import { visibleBars } from "../layout/visible.js";
import { GUTTER, prepare, theme } from "./canvas.js";

// What does not change while people move about.
/** @param {HTMLCanvasElement} canvas @param {Scene} scene */
export function drawMinimap(canvas, scene) {
  const { context, width, height } = prepare(canvas);
  const whole = { start: 0, end: Math.max(scene.recording.wall, 1) };
  const scale = (width - GUTTER) / whole.end;
  for (const phase of scene.recording.phases) {
    context.fillStyle = PHASE_COLOURS[phase.kind];
    const left = Math.max(phase.start, 0) * scale;
    context.fillRect(GUTTER + left, 0, Math.max(phase.end * scale - left, 1), 5);
  }
  const backends = scene.groups.filter(({ backend }) => backend !== null);
  const each = (height - 6) / Math.max(backends.length, 1);
  backends.forEach(({ summary: { lane } }, at) => {
    if (!lane) return;
    visibleBars(lane, whole, width - GUTTER, (x, wide, place, count, filled) => {
      context.fillStyle = scene.colour(lane.events[place]);
      const tall = Math.max((each - 1) * (count === 1 ? 1 : filled), 1);
      context.fillRect(GUTTER + x, 6 + (at + 1) * each - tall, Math.max(wide, 1), tall);
    });
  });
}

// The part that is shown, on a canvas of its own above.
/** @param {HTMLCanvasElement} canvas @param {Scene} scene @param {State} state */
export function drawViewport(canvas, scene, { view, range }) {
  const { context, width, height } = prepare(canvas);
  const colours = theme();
  const scale = (width - GUTTER) / Math.max(scene.recording.wall, 1);
  const [left, right] = [GUTTER + view.start * scale, GUTTER + view.end * scale];
  context.globalAlpha = 0.65;
  context.fillStyle = colours.back;
  context.fillRect(GUTTER, 0, left - GUTTER, height);
  context.fillRect(right, 0, width - right, height);
  context.globalAlpha = 1;
  if (range) {
    context.fillStyle = colours.accent;
    context.fillRect(GUTTER + range.start * scale, height - 3, Math.max((range.end - range.start) * scale, 2), 3);
  }
  context.strokeStyle = colours.accent;
  context.lineWidth = 2;
  context.strokeRect(left, 1, Math.max(right - left, 3), height - 2);
}
