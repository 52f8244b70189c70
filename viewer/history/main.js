// The page of a history: how fast the same was from commit to commit.

import { unpacked } from "../data/embedded.js";
import { backendColour } from "../layout/colours.js";
import { element } from "../panels/element.js";
import { wordTable } from "../panels/table.js";
import { drawHistory } from "./chart.js";
import { charts, commitsByTime, isWanted } from "./series.js";

// More would take long to draw, and nobody looks at them; the table has all.
const MOST_CHARTS = 60;

/** @typedef {import("./series.js").History} History */
/** @typedef {import("./series.js").Chart} Chart */

async function main() {
  const block = document.getElementById("recording");
  const bytes = await unpacked(block?.textContent ?? "");
  block?.remove();
  /** @type {History} */
  const history = JSON.parse(new TextDecoder().decode(bytes));
  const commits = commitsByTime(history.series);
  const shown = element("main", { class: "history" });
  const filter = element("input", { type: "search", placeholder: "device, phase, model", "aria-label": "Show only what has these words", oninput: () => update() });
  const axis = element("select", { "aria-label": "What lies to the right", onchange: () => update() },
    element("option", { value: "commit" }, "by commit"), element("option", { value: "time" }, "by day"));
  axis.value = commits.length > 0 ? "commit" : "time";
  const told = element("output", { class: "faint" });
  const update = () => {
    const wanted = charts(history.series.filter((series) => isWanted(series, filter.value)));
    told.textContent = wanted.length > MOST_CHARTS ? `the first ${MOST_CHARTS} of ${wanted.length} charts` : "";
    shown.replaceChildren(...wanted.slice(0, MOST_CHARTS).map((chart) => section(chart, commits, axis.value === "time")));
  };
  document.body.append(
    element("header", {}, element("h1", {}, history.title),
      element("div", { class: "facts" }, ...history.facts.map(([title, text]) => element("span", { class: "fact" }, element("b", {}, title), " ", text)))),
    element("div", { class: "toolbar" }, filter, axis, told),
    shown,
    element("section", { class: "history" }, ...history.notes.map((note) => element("p", { class: "faint" }, note)), history.table && wordTable(history.table)));
  update();
  performance.mark("ggprof-drawn");
}

// A chart below its name, with a sentence about what the pointer is at.
/** @param {Chart} chart @param {string[]} commits @param {boolean} byTime */
function section({ model, phase, lines }, commits, byTime) {
  const canvas = element("canvas", { class: "depth", role: "img", "aria-label": `Speed of ${phase}; the table below has the same figures` });
  const hint = "Each dot is a recording; the line goes through the medians. A ring marks a change that is more than noise.";
  const told = element("p", { class: "faint told", "aria-live": "polite" }, hint);
  const drawn = lines.map(({ name, points }, at) => ({ name, points, colour: backendColour(at) }));
  const key = drawn.map(({ name, colour }) => {
    const swatch = element("span", { class: "swatch" });
    swatch.style.background = colour;
    return element("span", {}, swatch, name);
  });
  /** @type {ReturnType<typeof drawHistory>} */
  let places = [];
  new ResizeObserver(() => { places = drawHistory(canvas, drawn, commits, byTime); }).observe(canvas);
  canvas.addEventListener("pointermove", ({ offsetX, offsetY }) => {
    const near = places.filter(({ x, y }) => Math.hypot(x - offsetX, y - offsetY) < 9);
    told.textContent = near.map(({ text }) => text).join(" · ") || hint;
  });
  return element("section", {},
    element("h2", {}, phase, " ", element("span", { class: "faint" }, model)),
    element("div", { class: "key" }, ...key), canvas, told);
}

main();
