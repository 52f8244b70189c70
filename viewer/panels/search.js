// The search box: how many events match, how long they took, and the way from one to the next.

import { count, duration } from "../data/units.js";
import { button, element } from "./element.js";

/** @param {Scene} scene @param {Store} store @param {Actions} actions */
export function searchBox(scene, store, actions) {
  const input = element("input", {
    type: "search", id: "search", placeholder: "Search: op: layer: kernel: request: dur>50us", "aria-label": "Search events",
    oninput: () => store.update({ query: input.value }),
    onkeydown: (event) => event.key === "Enter" && actions.stepMatch(event.shiftKey ? -1 : 1),
  });
  const found = element("output", { class: "faint", "aria-live": "polite" });
  store.on(["query", "highlight", "range"], ({ query, highlight }) => {
    if (input.value !== query) input.value = query;
    found.textContent = query || highlight ? words(scene.recording, actions.matches()) : "";
  });
  const previous = button("‹", "Previous match", () => actions.stepMatch(-1));
  const next = button("›", "Next match", () => actions.stepMatch(1));
  const box = element("span", { class: "search", role: "search" }, input, previous, next, found);
  return { box, open: () => input.focus() };
}

/** @param {Recording} recording @param {Uint32Array} events */
function words(recording, events) {
  const total = events.reduce((sum, event) => sum + recording.charged(event), 0);
  return events.length === 0 ? "no match" : `${count(events.length)} found, ${duration(total)}`;
}
