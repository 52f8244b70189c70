// The strip with the whole recording: dragging the frame moves what is shown, dragging
// elsewhere chooses it anew.

import { GUTTER } from "../draw/canvas.js";

const CLICK = 4;

/** @param {HTMLCanvasElement} canvas @param {Scene} scene @param {Store} store @param {Actions} actions */
export function handleMinimap(canvas, scene, store, actions) {
  /** @type {{ time: number, x: number, view: Span, moves: boolean } | null} */
  let drag = null;
  /** @param {PointerEvent} event */
  const timeAt = (event) => {
    const box = canvas.getBoundingClientRect();
    const fraction = (event.clientX - box.left - GUTTER) / (box.width - GUTTER);
    return Math.min(Math.max(fraction, 0), 1) * Math.max(scene.recording.wall, 1);
  };

  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    const { view } = store.state;
    const time = timeAt(event);
    const whole = view.start === 0 && view.end >= scene.recording.wall;
    drag = { time, x: event.clientX, view, moves: !whole && time >= view.start && time <= view.end };
  });

  canvas.addEventListener("pointermove", (event) => {
    if (!drag || Math.abs(event.clientX - drag.x) < CLICK) return;
    const time = timeAt(event);
    if (drag.moves) actions.show(drag.view.start + time - drag.time, drag.view.end + time - drag.time);
    else actions.show(Math.min(time, drag.time), Math.max(time, drag.time));
  });

  canvas.addEventListener("pointerup", (event) => {
    if (drag && Math.abs(event.clientX - drag.x) < CLICK) {
      const half = (drag.view.end - drag.view.start) / 2;
      actions.show(drag.time - half, drag.time + half);
    }
    drag = null;
  });
}
