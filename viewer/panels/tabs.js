// Panels of which one is shown. A panel is filled when it is first opened.

import { element } from "./element.js";

export function tabs(list) {
  const buttons = list.map(({ title }, at) => element("button", { type: "button", role: "tab", onclick: () => open(at) }, title));
  list.forEach(({ panel, title }) => {
    panel.setAttribute("role", "tabpanel");
    panel.setAttribute("aria-label", title);
    panel.classList.add("tabpanel");
  });
  function open(chosen) {
    list.forEach(({ panel, update }, at) => {
      panel.hidden = at !== chosen;
      buttons[at].setAttribute("aria-selected", String(at === chosen));
      if (at === chosen) update?.();
    });
  }
  open(0);
  return element("section", { class: "tabs" }, element("nav", { role: "tablist" }, ...buttons), ...list.map(({ panel }) => panel));
}
