// Panels of which one is shown. A panel is filled when it is opened, and again when the state
// changes that it says it depends on.

import { element } from "./element.js";

/** @param {Store} store @param {(Panel & { title: string })[]} list */
export function tabs(store, list) {
  let chosen = 0;
  const buttons = list.map(({ title }, at) => element("button", { type: "button", role: "tab", onclick: () => open(at), onkeydown: (event) => move(event, at) }, title));
  list.forEach(({ panel, title }) => {
    panel.setAttribute("role", "tabpanel");
    panel.setAttribute("aria-label", title);
    panel.classList.add("tabpanel");
  });

  function show() {
    list.forEach(({ panel }, at) => {
      panel.hidden = at !== chosen;
      buttons[at].setAttribute("aria-selected", String(at === chosen));
      buttons[at].tabIndex = at === chosen ? 0 : -1;
    });
  }

  /** @param {number} at */
  function open(at) {
    chosen = at;
    show();
    list[at].update?.();
  }

  // Arrow keys go from one tab to the next, as in other programs.
  /** @param {KeyboardEvent} event @param {number} at */
  function move(event, at) {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (!step) return;
    const next = (at + step + list.length) % list.length;
    open(next);
    buttons[next].focus();
  }

  // On paper there is room for all of them.
  window.addEventListener("beforeprint", () => list.forEach(({ panel, update }) => {
    panel.hidden = false;
    update?.();
  }));
  window.addEventListener("afterprint", show);
  // Plots have the colours of the page.
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => list[chosen].update?.());

  show();
  list.forEach(({ update, dependsOn }, at) => {
    if (update && dependsOn) store.on(dependsOn, () => at === chosen && update());
  });
  return element("section", { class: "tabs" }, element("nav", { role: "tablist" }, ...buttons), ...list.map(({ panel }) => panel));
}
