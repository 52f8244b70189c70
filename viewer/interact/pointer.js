// Mouse, pen and fingers on the timeline.

import { GUTTER, RULER } from "../draw/canvas.js";
import { rowAtHeight } from "../layout/rows.js";
import { placeAt } from "../layout/visible.js";

/** @typedef {Box & { fraction: number, time: number }} Point */
/** @typedef {{ from: Point, last: Point, selecting: boolean, moved: boolean }} Drag */

// Movements below this are a click.
const CLICK = 4;

/** @param {HTMLCanvasElement} canvas @param {Scene} scene @param {Store} store @param {Actions} actions */
export function handlePointer(canvas, scene, store, actions) {
  /** @type {Map<number, Point>} */
  const pointers = new Map();
  /** @type {Drag | null} */
  let drag = null;

  /** @param {MouseEvent} event @returns {Point} */
  const at = (event) => {
    const box = canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const width = box.width - GUTTER;
    const { view } = store.state;
    const fraction = Math.min(Math.max((x - GUTTER) / width, 0), 1);
    return { x, y, width, height: box.height, fraction, time: view.start + (view.end - view.start) * fraction };
  };

  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    const point = at(event);
    const sideways = Math.abs(event.deltaX) > Math.abs(event.deltaY) ? event.deltaX : event.shiftKey ? event.deltaY : 0;
    if (sideways !== 0) actions.pan(sideways / point.width);
    else if (point.x < GUTTER) actions.scroll(event.deltaY, point.height - RULER);
    else actions.zoom(Math.exp(Math.max(Math.min(event.deltaY, 200), -200) * 0.002), point.fraction);
  }, { passive: false });

  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    canvas.setPointerCapture(event.pointerId);
    const point = at(event);
    pointers.set(event.pointerId, point);
    const selecting = event.shiftKey || point.y < RULER;
    drag = { from: point, last: point, selecting, moved: false };
  });

  canvas.addEventListener("pointermove", (event) => {
    const point = at(event);
    if (pointers.size === 2 && pointers.has(event.pointerId)) pinch(event.pointerId, point);
    else if (drag && pointers.has(event.pointerId)) move(drag, point);
    else store.update({ hovered: { x: point.x, y: point.y, width: point.width, ...hit(scene, store.state, point) } });
  });

  canvas.addEventListener("pointerleave", () => store.update({ hovered: null }));

  /** @param {PointerEvent} event */
  const release = (event) => {
    pointers.delete(event.pointerId);
    if (drag && !drag.moved && event.type === "pointerup") click(at(event));
    drag = null;
  };
  canvas.addEventListener("pointerup", release);
  canvas.addEventListener("pointercancel", release);
  canvas.addEventListener("dblclick", () => actions.focus());

  /** @param {Drag} drag @param {Point} point */
  function move(drag, point) {
    drag.moved ||= Math.hypot(point.x - drag.from.x, point.y - drag.from.y) > CLICK;
    if (!drag.moved) return;
    if (drag.selecting) {
      const [start, end] = [drag.from.time, point.time].sort((a, b) => a - b);
      store.update({ range: { start, end }, hovered: null });
    } else {
      actions.pan((drag.last.x - point.x) / point.width);
      actions.scroll(drag.last.y - point.y, point.height - RULER);
      store.update({ hovered: null });
    }
    drag.last = point;
  }

  // Two fingers: what is between them stays between them.
  /** @param {number} id @param {Point} point */
  function pinch(id, point) {
    const [other] = [...pointers].filter(([key]) => key !== id).map(([, value]) => value);
    const before = Math.abs((pointers.get(id) ?? point).x - other.x);
    const now = Math.abs(point.x - other.x);
    if (before > 0 && now > 0) actions.zoom(before / now, (point.fraction + other.fraction) / 2);
    pointers.set(id, point);
    if (drag) drag.moved = true;
  }

  /** @param {Point} point */
  function click(point) {
    const { row, place, event } = hit(scene, store.state, point);
    if (row && ["band", "group", "fold"].includes(row.kind)) actions.toggle("collapsed", row.key);
    else if (point.x < GUTTER && row && !row.top) actions.toggle("pinned", row.key);
    else if (point.y < RULER) store.update({ range: null });
    else if (row?.eventOf && row.spans && place !== -1) actions.selectWork(row.spans.events[place]);
    else if (row?.spans && (row.top || row.kind === "requests")) selectSpan(row.spans, place);
    else actions.select(event);
  }

  // A click on a phase, a graph run or a part of a request makes it the range.
  /** @param {Lane} spans @param {number} place */
  function selectSpan(spans, place) {
    const span = () => ({ start: Math.max(spans.starts[place], 0), end: spans.starts[place] + spans.durations[place] });
    store.update({ range: place === -1 ? null : span() });
  }
}

/** @param {Scene} scene @param {State} state @param {Point} point */
function rowAt(scene, state, { y }) {
  return y < RULER ? undefined : rowAtHeight(scene.rows, scene.fixed, state.scroll, y - RULER);
}

// What is under the pointer: the row, the place in its lane and the event there, -1 for none.
/** @param {Scene} scene @param {State} state @param {Point} point */
function hit(scene, state, point) {
  const row = rowAt(scene, state, point);
  const lane = row?.lane ?? row?.spans;
  const place = lane && point.x >= GUTTER ? placeAt(lane, state.view, point.width, point.x - GUTTER) : -1;
  return { row, place, event: row?.lane && place !== -1 ? row.lane.events[place] : -1 };
}
