// The list of the largest idle times, in all or in the selected range.

import { largestGaps } from "../data/gaps.js";
import { duration, percent } from "../data/units.js";
import { element } from "./element.js";

/** @param {Scene} scene @param {Store} store @param {Actions} actions @returns {Panel} */
export function gapsPanel(scene, store, actions) {
  const { recording } = scene;
  const body = element("tbody", {});
  const caption = element("p", { class: "faint" });
  /** @param {Gap} gap @param {number} wall */
  const line = (gap, wall) => {
    const cells = [
      duration(gap.end - gap.start), percent((gap.end - gap.start) / wall), recording.backends[gap.backend].label,
      duration(gap.start) || "0", recording.fullName(gap.before), recording.fullName(gap.after),
    ];
    const choose = () => actions.showGap(gap);
    return element("tr", { tabindex: 0, onclick: choose, onkeydown: (event) => event.key === "Enter" && choose() }, ...cells.map((text) => element("td", {}, text)));
  };
  const titles = ["Idle", "% wall", "Backend", "From", "After", "Before"].map((title) => element("th", { scope: "col" }, title));
  const table = element("table", { class: "gaps" }, element("thead", {}, element("tr", {}, ...titles)), body);
  const update = () => {
    const { range } = store.state;
    const gaps = largestGaps(recording, range);
    const wall = Math.max(recording.recordedIn(range), 1);
    const where = range ? `the selected ${duration(wall)}` : "the whole recording";
    caption.textContent = gaps.length === 0 ? `No backend was idle between its events in ${where}.` : `The longest times without an event of a backend in ${where}. Click one to see it.`;
    table.hidden = gaps.length === 0;
    body.replaceChildren(...gaps.map((gap) => line(gap, wall)));
  };
  return { panel: element("div", {}, caption, table), update, dependsOn: ["range"] };
}
