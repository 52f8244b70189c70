// What was recorded, on what, and what is missing: a red bar if anything is lost.

import { count, duration } from "../data/units.js";
import { element } from "./element.js";

// What one wants to see at once; the rest is for whoever opens it.
const FIRST = ["recording", "program", "model", "wall time"];

/** @param {Recording} recording */
export function head(recording) {
  const facts = recording.facts.filter(([, text]) => text !== "");
  /** @param {[string, string][]} some */
  const shown = (some) => some.map(([title, text]) => element("span", { class: "fact" }, element("b", {}, title), " ", text));
  const [first, others] = [facts.filter(([title]) => FIRST.includes(title)), facts.filter(([title]) => !FIRST.includes(title))];
  const losses = recording.warnings.filter(({ loss }) => loss);
  const caveats = recording.warnings.filter(({ loss }) => !loss);
  if (recording.drawn !== null && recording.drawn < recording.count) {
    caveats.push({ text: `Only the ${count(recording.drawn)} longest of ${count(recording.count)} events are drawn; all are counted in the tables.`, loss: false });
  }
  const unseen = recording.tasks.filter(({ start, duration }) => start + duration <= 0 || start >= recording.wall);
  if (unseen.length > 0) {
    const total = duration(unseen.reduce((sum, task) => sum + task.duration, 0));
    caveats.push({ text: `${count(unseen.length)} ${unseen.length === 1 ? "task" : "tasks"} of the host (${total} in all) came before the first event or after the last: not drawn.`, loss: false });
  }
  return element("header", {},
    element("h1", {}, recording.title),
    element("div", { class: "facts" }, ...shown(first)),
    others.length === 0 ? null : element("details", { class: "facts" }, element("summary", {}, others.map(([title]) => title).join(", ")), ...shown(others)),
    ...losses.map(({ text }) => element("p", { class: "loss", role: "alert" }, text)),
    caveats.length === 0 ? null : element("details", { class: "caveats", open: caveats.length < 3 },
      element("summary", {}, caveats.length === 1 ? "1 thing to know" : `${caveats.length} things to know`),
      ...caveats.map(({ text }) => element("p", {}, text))));
}
