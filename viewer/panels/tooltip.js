// A few words about what is under the pointer.

import { duration, percent } from "../data/units.js";
import { GUTTER } from "../draw/canvas.js";
import { isCounter, rates, STEP } from "../layout/counters.js";
import { element } from "./element.js";

/** @param {Scene} scene @param {Store} store @param {HTMLElement} surface */
export function tooltip(scene, store, surface) {
  const box = element("div", { class: "tooltip", "aria-hidden": "true" });
  store.on(["hovered"], ({ hovered, view }) => {
    const [title, ...lines] = hovered ? words(scene.recording, hovered, view) : [];
    box.hidden = !title;
    if (!hovered || !title) return;
    const { x, y } = hovered;
    const shown = lines.filter((line) => line !== "");
    box.replaceChildren(element("b", {}, title), ...shown.map((line, at) => element("div", { class: at === shown.length - 1 ? "faint" : "" }, line)));
    const [width, height] = [surface.clientWidth, surface.clientHeight];
    box.style.left = `${Math.max(Math.min(x + 14, width - box.offsetWidth - 4), 0)}px`;
    box.style.top = `${y + 18 + box.offsetHeight > height ? Math.max(y - box.offsetHeight - 8, 0) : y + 18}px`;
  });
  return box;
}

// A title and lines; empty for nothing.
/** @param {Recording} recording @param {Hovered} hovered @param {Span} view */
function words(recording, { row, place, event, x, width }, view) {
  if (!row) return [];
  if (row.lane && event >= 0) return [...eventWords(recording, event), ...waitWords(row.lane, place)];
  if (x < GUTTER) return nameWords(row);
  if (isCounter(row)) return counterWords(row, view, x - GUTTER, width);
  return row.spans && place !== -1 ? row.look?.tip?.(row.spans.events[place]) ?? [] : [];
}

/** @param {Recording} recording @param {number} event */
function eventWords(recording, event) {
  const where = recording.tensor(event) || recording.backend(event).label;
  return [`${recording.label(event)} ${duration(recording.duration(event))}`, where, recording.shapes[recording.shape(event)]];
}

// What the thread did of it.
/** @param {Lane} lane @param {number} place */
function waitWords({ waits, durations }, place) {
  if (!waits) return [];
  const share = durations[place] + waits[place] > 0 ? waits[place] / (durations[place] + waits[place]) : 0;
  return [`this thread: ${duration(durations[place])} of work, then ${duration(waits[place])} waiting (${percent(share)})`];
}

/** @param {PlacedRow} row */
function nameWords(row) {
  if (row.kind === "group" || row.kind === "band") return [row.label, "click: open or close"];
  return row.top ? [row.label] : [row.label, row.pinned ? "click: unpin" : "click: pin to the top"];
}

/** @param {CounterRow} row @param {Span} view @param {number} x @param {number} width */
function counterWords(row, view, x, width) {
  const rate = rates(row, view, width)[Math.floor(x / STEP)] ?? 0;
  return rate > 0 ? [row.words(rate)] : [];
}
