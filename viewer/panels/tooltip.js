// A few words about the event under the pointer.

import { duration } from "../data/units.js";
import { element } from "./element.js";

export function tooltip(scene, store, surface) {
  const box = element("div", { class: "tooltip", "aria-hidden": "true" });
  box.hidden = true;
  const { recording } = scene;
  store.on(["hovered"], ({ hovered }) => {
    box.hidden = !hovered || hovered.event < 0;
    if (box.hidden) return;
    const { event, x, y } = hovered;
    const shape = recording.shapes[recording.shape(event)];
    box.replaceChildren(
      element("b", {}, recording.label(event)), ` ${duration(recording.duration(event))}`,
      element("br"), recording.tensor(event) || recording.backend(event).label,
      element("br"), element("span", { class: "faint" }, shape));
    const [width, height] = [surface.clientWidth, surface.clientHeight];
    box.style.left = `${Math.max(Math.min(x + 14, width - box.offsetWidth - 4), 0)}px`;
    box.style.top = `${y + 18 + box.offsetHeight > height ? Math.max(y - box.offsetHeight - 8, 0) : y + 18}px`;
  });
  return box;
}
