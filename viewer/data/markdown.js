// Rows of text as a markdown table. Names come from strangers: bars and backticks are escaped.

/** @param {string[]} titles @param {string[][]} rows */
export function markdownTable(titles, rows) {
  /** @param {string[]} cells */
  const line = (cells) => `| ${cells.map(escape).join(" | ")} |`;
  const rule = `|${titles.map((_, at) => (at === 0 ? "---" : "---:")).join("|")}|`;
  return [line(titles), rule, ...rows.map(line)].join("\n") + "\n";
}

/** @param {string} text */
function escape(text) {
  return String(text).replace(/[\\|`<>*_]/g, "\\$&").replace(/\s+/g, " ");
}
