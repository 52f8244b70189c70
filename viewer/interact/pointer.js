// Mouse, pen and fingers on the timeline.

import { GUTTER, RULER } from "../draw/canvas.js";
import { rowAtHeight } from "../layout/rows.js";
import { placeAt } from "../layout/visible.js";

// Movements below this are a click.
const CLICK = 4;

export function handlePointer(canvas, scene, store, actions) {
  const pointers = new Map();
  let drag = null;

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
    drag = { from: point, last: point, selecting, moved: false, view: store.state.view };
  });

  canvas.addEventListener("pointermove", (event) => {
    const point = at(event);
    if (pointers.size === 2 && pointers.has(event.pointerId)) pinch(event.pointerId, point);
    else if (drag && pointers.has(event.pointerId)) move(point);
    else store.update({ hovered: { x: point.x, y: point.y, event: hit(scene, store.state, point) } });
  });

  canvas.addEventListener("pointerleave", () => store.update({ hovered: null }));

  const release = (event) => {
    pointers.delete(event.pointerId);
    if (drag && !drag.moved && event.type === "pointerup") click(at(event));
    drag = null;
  };
  canvas.addEventListener("pointerup", release);
  canvas.addEventListener("pointercancel", release);
  canvas.addEventListener("dblclick", () => actions.focus());

  function move(point) {
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
  function pinch(id, point) {
    const [other] = [...pointers].filter(([key]) => key !== id).map(([, value]) => value);
    const before = Math.abs(pointers.get(id).x - other.x);
    const now = Math.abs(point.x - other.x);
    if (before > 0 && now > 0) actions.zoom(before / now, (point.fraction + other.fraction) / 2);
    pointers.set(id, point);
    drag.moved = true;
  }

  function click(point) {
    const row = rowAt(scene, store.state, point);
    if (point.x < GUTTER && row?.kind === "group") actions.toggle("collapsed", row.key);
    else if (point.x < GUTTER && row?.lane) actions.toggle("pinned", row.key);
    else if (point.y < RULER) store.update({ range: null });
    else if (row?.kind === "phases") selectSpan(scene.recording.phases.find(({ start, end }) => start <= point.time && point.time < end));
    else actions.select(hit(scene, store.state, point));
  }

  // A click on a phase makes it the range.
  function selectSpan(span) {
    store.update({ range: span ? { start: span.start, end: span.end } : null });
  }
}

function rowAt(scene, state, { y }) {
  return y < RULER ? undefined : rowAtHeight(scene.rows, scene.fixed, state.scroll, y - RULER);
}

// The event under the pointer; -1 for none.
function hit(scene, state, point) {
  const row = rowAt(scene, state, point);
  if (!row?.lane || point.x < GUTTER) return -1;
  const at = placeAt(row.lane, state.view, point.width, point.x - GUTTER);
  return at === -1 ? -1 : row.lane.events[at];
}
