// Buttons above the timeline.

import { button, element } from "./element.js";

/** @type {[string, number][]} */
const SPANS = [["1 s", 1e9], ["100 ms", 1e8], ["10 ms", 1e7], ["1 ms", 1e6], ["100 µs", 1e5]];
const COLOURINGS = { op: "operation", backend: "backend", layer: "layer", efficiency: "efficiency (share of the roof)" };

/** @param {Store} store @param {Actions} actions @param {HTMLElement} searchBox @param {() => void} toggleHelp */
export function toolbar(store, actions, searchBox, toggleHelp) {
  const spans = SPANS.map(([title, ns]) => button(title, `Show ${title}`, () => actions.span(ns)));
  const options = Object.entries(COLOURINGS).map(([value, title]) => element("option", { value }, title));
  const colours = element("select", { "aria-label": "Colour by", onchange: () => store.update({ colourBy: colours.value }) }, ...options);
  return element("div", { class: "toolbar", role: "toolbar", "aria-label": "Timeline" },
    element("span", { class: "buttons" }, button("Fit", "Show the whole recording", () => actions.fit()), ...spans),
    searchBox,
    element("label", {}, "colour by ", colours),
    button("?", "Keys", toggleHelp));
}
