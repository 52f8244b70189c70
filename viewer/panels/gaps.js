// The list of the largest idle times.

import { largestGaps } from "../data/gaps.js";
import { duration } from "../data/units.js";
import { element } from "./element.js";

export function gapsPanel(scene, store, actions) {
  const body = element("tbody", {});
  const { recording } = scene;
  const show = (gap) => {
    const room = (gap.end - gap.start) / 2;
    actions.show(gap.start - room, gap.end + room);
    store.update({ range: { start: gap.start, end: gap.end } });
  };
  const line = (gap) => {
    const cells = [duration(gap.end - gap.start), recording.backend(gap.after).label, duration(gap.start) || "0", name(recording, gap.before), name(recording, gap.after)];
    return element("tr", { tabindex: 0, onclick: () => show(gap), onkeydown: (event) => event.key === "Enter" && show(gap) }, ...cells.map((text) => element("td", {}, text)));
  };
  const update = () => body.replaceChildren(...largestGaps(recording).map(line));
  const titles = ["Idle", "Backend", "From", "After", "Before"].map((title) => element("th", { scope: "col" }, title));
  const table = element("table", { class: "gaps" }, element("thead", {}, element("tr", {}, ...titles)), body);
  return { panel: element("div", {}, table), update };
}

function name(recording, event) {
  return [recording.label(event), recording.tensor(event)].filter(Boolean).join(" ");
}
