// What the page opens on: what costs time and what to change, where each phase's time went, and which
// layers ran where. A click goes to the place on the timeline.

import { duration, percent } from "../data/units.js";
import { backendColour, PHASE_COLOURS, spentColour } from "../layout/colours.js";
import { lowerBound } from "../layout/visible.js";
import { element } from "./element.js";
import { wordTable } from "./table.js";

// Rows below this are drawn, and named only by pointing at them.
const NAMED = 0.01;
const KINDS = ["warm-up", "prompt", "generation", "mixed", "encoding", "graphs", "draft"];
// More layers than this are a strip without numbers.
const NUMBERED = 64;

/** @param {Scene} scene @param {Store} store @param {Actions} actions */
export function overviewPanel(scene, store, actions) {
  const { overview } = scene.recording;
  const go = new Places(scene.recording, store, actions);
  return element("div", { class: "overview" },
    element("section", {}, element("h2", {}, "What costs time, and what to change"), findings(overview, go), ...besideFindings(overview)),
    element("section", {}, element("h2", {}, "Where the time went"), ...overview.budgets.map((budget) => budgetBar(budget, go))),
    placement(scene.recording, go),
    ...overview.tables.map(({ title, table, notes }) => element("section", {}, element("h2", {}, title), table && wordTable(table), ...notes.map(sentence))));
}

/** @param {string} text */
function sentence(text) {
  return element("p", { class: "faint" }, text);
}

// Places on the timeline to go to.
class Places {
  /** @param {Recording} recording @param {Store} store @param {Actions} actions */
  constructor(recording, store, actions) {
    this.recording = recording;
    this.store = store;
    this.actions = actions;
  }

  // The first of the spans, as the selected range.
  /** @param {[number, number][]} spans */
  phase(spans) {
    if (spans.length === 0) return;
    const [start, end] = [Math.max(spans[0][0], 0), spans[0][1]];
    this.actions.show(start, end);
    this.store.update({ range: { start, end } });
  }

  // The event with these times; where there is none, what lies between them, with as much on both sides.
  /** @param {[number, number]} times */
  event([start, end]) {
    const { columns } = this.recording;
    for (let at = lowerBound(columns.start, start, 0); at < columns.start.length && columns.start[at] === start; at += 1) {
      if (columns.start[at] + columns.duration[at] === end) return this.actions.goTo(at);
    }
    this.actions.show(Math.max(2 * start - end, 0), 2 * end - start);
    this.store.update({ range: { start, end } });
  }

  // The first event of a layer on a backend, in phases of a kind.
  /** @param {number | null} layer @param {number} backend @param {number | null} kind */
  layer(layer, backend, kind) {
    const { columns } = this.recording;
    for (let event = 0; event < columns.start.length; event += 1) {
      if (columns.backend[event] !== backend || columns.layer[event] !== (layer === null ? 0 : layer + 1)) continue;
      if (this.recording.isCopy(event) || (this.recording.phase(event)?.kind ?? null) !== kind) continue;
      return this.actions.goTo(event);
    }
  }
}

/** @param {Overview} overview @param {Places} go */
function findings({ findings, healthy, nothingFound }, go) {
  if (nothingFound !== null) return element("p", { class: healthy ? "healthy" : "nothing-found" }, nothingFound);
  return element("ol", { class: "findings" }, ...findings.map((finding) => {
    const onclick = () => (finding.example ? go.event(finding.example) : go.phase(finding.spans));
    const bar = element("i", { class: "cost" });
    bar.style.width = `${Math.min(finding.share, 1) * 100}%`;
    return element("li", {},
      element("button", { type: "button", class: "finding", title: "Show where", onclick }, bar, element("b", {}, finding.text)),
      lines(finding));
  }));
}

/** @param {{ lines: [string, string][] }} point */
function lines({ lines }) {
  return element("dl", {}, ...lines.flatMap(([title, text]) => [element("dt", {}, title), element("dd", {}, text)]));
}

// How far phases are from what is possible, and what costs little.
/** @param {Overview} overview */
function besideFindings({ limits, notSeen, small }) {
  const points = small.map((point) => element("li", {}, element("b", {}, point.text), lines(point)));
  const folded = element("details", {}, element("summary", {}, "Below 5% of a phase"), element("ol", { class: "findings" }, ...points));
  return [...notSeen.map(sentence), ...limits.map(sentence), small.length > 0 ? folded : null];
}

/** @param {Budget} budget @param {Places} go */
function budgetBar(budget, go) {
  const wall = Math.max(budget.wall, 1);
  const colours = budget.rows.map((row, at) => spentColour(row.spent, row.backend, budget.rows.slice(0, at).filter((other) => other.backend === row.backend).length));
  /** @param {{ ns: number, estimated: number }} row */
  const each = ({ ns, estimated }) => `${estimated > 0 ? "≈ " : ""}${duration(ns / budget.units)}`;
  const parts = budget.rows.map((row, at) => {
    const part = element("i", { title: `${percent(row.ns / wall)} ${row.words}: ${each(row)} a ${budget.unit}` });
    part.style.width = `${(row.ns / wall) * 100}%`;
    part.style.background = colours[at];
    return part;
  });
  const named = budget.rows.filter(({ ns }) => ns / wall >= NAMED).map((row, at) => {
    const swatch = element("i", { class: "swatch" });
    swatch.style.background = colours[at];
    return element("tr", {}, element("td", {}, percent(row.ns / wall)), element("td", {}, each(row)), element("td", { class: "name" }, swatch, ` ${row.words}`));
  });
  return element("figure", { class: "budget" },
    element("figcaption", {}, element("button", { type: "button", class: "plainly", title: "Show this phase", onclick: () => go.phase(budget.spans) }, budget.title)),
    element("div", { class: "stacked", role: "img", "aria-label": `Where the time of ${budget.title} went` }, ...parts),
    element("table", {}, element("tbody", {}, ...named)));
}

// A strip of layers for each backend and kind of phase: the fuller a cell, the more of the layer's time
// was on that backend.
/** @param {Recording} recording @param {Places} go */
function placement(recording, go) {
  const strips = recording.overview.placement.flatMap(({ kind, cells }) => {
    const layers = new Set(cells.map(([layer]) => layer));
    if (layers.size < 2) return [];
    const head = element("h3", {}, kind === null ? "outside of phases" : KINDS[kind]);
    head.style.borderColor = PHASE_COLOURS[kind ?? 5];
    const backends = [...new Set(cells.map(([, , backend]) => backend))].sort((a, b) => a - b);
    return [head, ...backends.map((backend) => strip(recording, kind, backend, cells, go))];
  });
  if (strips.length === 0) return null;
  return element("section", {}, element("h2", {}, "Which layers ran where"), element("div", { class: "map" }, ...strips));
}

/** @param {Recording} recording @param {number | null} kind @param {number} backend @param {MapCell[]} cells @param {Places} go */
function strip(recording, kind, backend, cells, go) {
  const layers = [...new Set(cells.map(([layer]) => layer))].sort((a, b) => (a ?? Infinity) - (b ?? Infinity));
  const label = recording.backends[backend].label;
  const boxes = layers.map((layer) => {
    const all = cells.filter((cell) => cell[0] === layer);
    const own = all.filter((cell) => cell[2] === backend);
    /** @param {MapCell[]} of */
    const time = (of) => of.reduce((sum, cell) => sum + cell[3], 0);
    const share = time(all) > 0 ? time(own) / time(all) : 0;
    const what = own.map(([, module, , ns, , estimated]) => `${recording.modules[module]} ${estimated > 0 ? "≈ " : ""}${duration(ns)}`).join(", ");
    const name = layer === null ? "outside of layers" : `layer ${layer}`;
    const box = element("button", { type: "button", class: "cell", title: `${name} on ${label}: ${what || "nothing"}`, "aria-label": `${name} on ${label}`, onclick: () => own.length > 0 && go.layer(layer, backend, kind) },
      layers.length <= NUMBERED ? (layer === null ? "in/out" : String(layer)) : "");
    box.classList.toggle("estimated", own.some(([, , , , , estimated]) => estimated > 0));
    box.style.setProperty("--full", `${Math.round(share * 100)}%`);
    box.style.setProperty("--own", backendColour(backend));
    return box;
  });
  // One stop of the tab key for a strip; arrow keys go from cell to cell.
  boxes.forEach((box, at) => {
    box.tabIndex = at === 0 ? 0 : -1;
    box.addEventListener("keydown", ({ key }) => boxes[at + (key === "ArrowRight" ? 1 : key === "ArrowLeft" ? -1 : 0)]?.focus());
  });
  return element("div", { class: "strip" }, element("span", { class: "faint" }, label), element("div", { class: "cells" }, ...boxes));
}
