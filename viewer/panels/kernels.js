// What the device did for the selected event: one line for each kernel, copy or fill.

import { bytes, count, duration, percent } from "../data/units.js";
import { remarks } from "../layout/streams.js";
import { element } from "./element.js";

// Prompts on some backends launch thousands for one op.
const SHOWN = 100;

/** @param {Recording} recording @param {number} event @param {number} selected @param {(work: number) => void} choose */
export function kernelTable(recording, event, selected, choose) {
  const { device } = recording;
  const works = [...device.of(event)];
  if (works.length === 0) return [];
  const all = works.reduce((sum, work) => sum + device.charged(work), 0);
  /** @param {number} work */
  const line = (work) => {
    const what = device.kind(work) === "kernel" ? device.name(work) : `${device.kind(work)} ${bytes(device.bytes(work))}`;
    const cells = [String(device.stream(work)), duration(device.duration(work)), percent(all > 0 ? device.charged(work) / all : 0)];
    return element("tr", {
      class: work === selected ? "marked" : "", tabindex: 0, title: device.name(work),
      onclick: () => choose(work), onkeydown: (event) => event.key === "Enter" && choose(work),
    }, element("td", { class: "name" }, what, ...remarks(device, work).map((text) => element("div", { class: "faint" }, text))), ...cells.map((text) => element("td", {}, text)));
  };
  const titles = ["Kernel", "Stream", "Duration", "Share"].map((title) => element("th", { scope: "col" }, title));
  return [
    element("h3", {}, works.length === 1 ? "What the device did" : `What the device did, in ${count(works.length)} parts`),
    element("table", { class: "kernels" }, element("thead", {}, element("tr", {}, ...titles)), element("tbody", {}, ...works.slice(0, SHOWN).map(line))),
    ...(works.length > SHOWN ? [element("p", { class: "faint" }, `and ${count(works.length - SHOWN)} more`)] : []),
  ];
}
