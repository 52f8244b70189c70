// A table of words, as reports have it.

import { element } from "./element.js";

/** @param {WordTable} table */
export function wordTable({ columns, rows }) {
  /** @param {"th" | "td"} tag @param {string[]} cells */
  const row = (tag, cells) => element("tr", {}, ...cells.map((cell, at) => element(tag, { class: columns[at].right ? undefined : "name" }, cell)));
  return element("table", { class: "words" }, element("thead", {}, row("th", columns.map(({ title }) => title))), element("tbody", {}, ...rows.map((cells) => row("td", cells))));
}
