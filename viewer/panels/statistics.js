// The table of totals: a tree that opens, sorted by any column, for all or for a range.

import { markdownTable } from "../data/markdown.js";
import { GROUPINGS, statistics } from "../data/statistics.js";
import { bandwidth, compute, count, duration, percent } from "../data/units.js";
import { button, element } from "./element.js";

/** @type {{ title: string, value: (row: Total) => string | number, text: (row: Total) => string }[]} */
const ALWAYS = [
  { title: "Name", value: (row) => row.name, text: (row) => row.name },
  { title: "% wall", value: (row) => row.share, text: (row) => percent(row.share) },
  { title: "Total", value: (row) => row.total, text: (row) => `${row.estimated > 0 ? "≈ " : ""}${duration(row.total)}` },
  { title: "Count", value: (row) => row.count, text: (row) => count(row.count) },
  { title: "Avg", value: (row) => row.average, text: (row) => duration(row.average) },
  { title: "Min", value: (row) => row.min, text: (row) => duration(row.min) },
  { title: "p50", value: (row) => row.p50, text: (row) => duration(row.p50) },
  { title: "p95", value: (row) => row.p95, text: (row) => duration(row.p95) },
  { title: "Max", value: (row) => row.max, text: (row) => duration(row.max) },
  { title: "Memory", value: (row) => row.bandwidth ?? -1, text: (row) => bandwidth(row.bandwidth) },
  { title: "Compute", value: (row) => row.compute ?? -1, text: (row) => compute(row.compute) },
];

// Shown where something is estimated: the part of the total that was not measured.
/** @type {(typeof ALWAYS)[0]} */
const ESTIMATED = {
  title: "Estimated", value: (row) => row.estimated,
  text: (row) => (row.estimated > 0 ? `${duration(row.estimated)}${row.error === null ? "" : ` ± ${duration(row.error)}`}` : ""),
};

// Of a part of a recording that was made in samples.
const WHOLE = "Only measured times: what was timed as a whole (SPLIT) or by its call is divided among ops by samples of the "
  + "whole recording, and how much of that is in a part of it is not known.";

/** @param {Scene} scene @param {Store} store */
export function statisticsPanel(scene, store) {
  const sorting = { column: 2, descending: true };
  const columns = scene.recording.estimates.any ? [...ALWAYS.slice(0, 3), ESTIMATED, ...ALWAYS.slice(3)] : ALWAYS;
  /** @type {Set<string>} */
  const open = new Set();
  /** @type {ReturnType<typeof statistics>} */
  let answer = { rows: [], total: 0, count: 0, whole: false };
  const caption = element("span", { class: "faint" });
  const hint = element("p", { class: "faint hint" }, WHOLE);
  const table = element("table", { class: "statistics", role: "treegrid" });
  const bar = element("div", { class: "bar" }, grouping(store), button("Copy as markdown", "Copy the table as markdown", () => copy(columns, visibleRows())), caption);

  /** @param {Total[]} rows */
  const sorted = (rows) => [...rows].sort((a, b) => {
    const value = columns[sorting.column].value;
    const order = value(a) < value(b) ? -1 : value(a) > value(b) ? 1 : 0;
    return sorting.descending ? -order : order;
  });

  function visibleRows() {
    /** @type {{ row: Total, depth: number }[]} */
    const rows = [];
    /** @param {Total[]} list @param {number} depth */
    const add = (list, depth) => sorted(list).forEach((row) => {
      rows.push({ row, depth });
      if (open.has(key(row))) add((row.opened ??= row.children()), depth + 1);
    });
    add(answer.rows, 0);
    return rows;
  }

  function show() {
    const { highlight } = store.state;
    const marked = highlight ? key(highlight) : "";
    table.replaceChildren(header(), element("tbody", {}, ...visibleRows().map(({ row, depth }) => line(row, depth, key(row) === marked))));
  }

  function header() {
    const cells = columns.map(({ title }, at) => {
      const direction = at === sorting.column ? (sorting.descending ? "descending" : "ascending") : "none";
      return element("th", { "aria-sort": direction, scope: "col" }, button(title, `Sort by ${title}`, () => {
        sorting.descending = at === sorting.column ? !sorting.descending : at !== 0;
        sorting.column = at;
        show();
      }));
    });
    return element("thead", {}, element("tr", {}, ...cells));
  }

  /** @param {Total} row @param {number} depth @param {boolean} marked */
  function line(row, depth, marked) {
    const toggle = row.leaf ? null : button(open.has(key(row)) ? "▾" : "▸", `Open or close ${row.name}`, (event) => {
      event.stopPropagation();
      if (!open.delete(key(row))) open.add(key(row));
      show();
    });
    const name = element("td", { class: "name" }, toggle, row.name);
    name.style.paddingLeft = `${depth * 1.2 + (row.leaf ? 1.9 : 0.3)}em`;
    const cells = columns.slice(1).map((column, at) => {
      const cell = element("td", {}, column.text(row));
      if (at === 0) cell.style.setProperty("--share", `${Math.min(row.share * 100, 100)}%`);
      return cell;
    });
    const choose = () => store.update({ highlight: marked ? null : { path: row.path, name: row.name } });
    return element("tr", {
      class: marked ? "marked" : "", tabindex: 0, "aria-level": depth + 1, onclick: choose,
      onkeydown: (event) => event.key === "Enter" && event.target === event.currentTarget && choose(),
    }, name, ...cells);
  }

  store.on(["range", "groupBy", "hidden", "query"], ({ range, groupBy, hidden, query }) => {
    answer = statistics(scene.recording, groupBy, { range, hidden, searched: scene.searched });
    const which = query ? "found by the search " : "";
    const where = `${which}${range ? `in the selected ${duration(range.end - range.start)}` : "in the whole recording"}`;
    caption.textContent = `${count(answer.count)} ${answer.count === 1 ? "event" : "events"} ${where}, ${duration(answer.total)} in all`;
    hint.hidden = !answer.whole;
    show();
  });
  store.on(["highlight"], show);
  return element("div", {}, bar, hint, table);
}

/** @param {Store} store */
function grouping(store) {
  const options = Object.entries(GROUPINGS).map(([value, { title }]) => element("option", { value }, title));
  const select = element("select", { "aria-label": "Group by", onchange: () => store.update({ groupBy: select.value, highlight: null }) }, ...options);
  return select;
}

/** @param {{ path: Path }} row */
function key({ path }) {
  return path.map(({ level, key }) => `${level}=${key}`).join("/");
}

/** @param {typeof ALWAYS} columns @param {{ row: Total, depth: number }[]} rows */
function copy(columns, rows) {
  const lines = rows.map(({ row, depth }) => columns.map(({ text }, at) => (at === 0 ? "\u2003".repeat(depth) : "") + text(row)));
  navigator.clipboard?.writeText(markdownTable(columns.map(({ title }) => title), lines));
}
