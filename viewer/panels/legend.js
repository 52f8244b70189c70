// The ops that take longest with their colours: a click hides one, shift-click leaves only it.

import { colourKey, colourOfName } from "../layout/colours.js";
import { opsByTime } from "../data/statistics.js";
import { element } from "./element.js";

const SHOWN = 14;

/** @param {Scene} scene @param {Store} store */
export function legend(scene, store) {
  const { recording } = scene;
  const ops = opsByTime(recording).slice(0, SHOWN);
  const chips = ops.map((op) => chip(recording, store, op));
  const key = element("span", { class: "key" });
  store.on(["hidden", "colourBy"], ({ hidden, colourBy }) => {
    chips.forEach((one, at) => {
      one.setAttribute("aria-pressed", String(!hidden.has(ops[at])));
      one.classList.toggle("plain", colourBy !== "op");
    });
    key.replaceChildren(...colourKey(recording, colourBy).map(({ colour, text }) => element("span", {}, swatchOf(colour), text)));
  });
  return element("div", { class: "legend", role: "group", "aria-label": "Operations: click hides, shift-click isolates" }, key, ...chips);
}

/** @param {string} colour */
function swatchOf(colour) {
  const swatch = element("i", { class: "swatch" });
  swatch.style.background = colour;
  return swatch;
}

/** @param {Recording} recording @param {Store} store @param {number} op */
function chip(recording, store, op) {
  const swatch = swatchOf(colourOfName(recording.opNames[op]));
  /** @param {MouseEvent} event */
  const onclick = (event) => store.update({ hidden: event.shiftKey ? isolate(recording, store.state.hidden, op) : toggle(store.state.hidden, op) });
  return element("button", { type: "button", class: "chip", title: "Click hides, shift-click isolates", onclick }, swatch, recording.opNames[op]);
}

/** @param {Set<number>} hidden @param {number} op */
function toggle(hidden, op) {
  const changed = new Set(hidden);
  if (!changed.delete(op)) changed.add(op);
  return changed;
}

// Isolating what is isolated shows all again.
/** @param {Recording} recording @param {Set<number>} hidden @param {number} op */
function isolate(recording, hidden, op) {
  const others = recording.opNames.map((_, at) => at).filter((at) => at !== op);
  const isolated = !hidden.has(op) && others.every((at) => hidden.has(at));
  return new Set(isolated ? [] : others);
}
