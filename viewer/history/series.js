// What the page of a history draws: charts of one model and phase, with a line for each device.

/** @typedef {{ file: string, at: number | null, speed: number }} HistoryRun */
/** @typedef {{ commit: string | null, median: number, lowest: number, highest: number, change: { share: number, certain: boolean } | null, runs: HistoryRun[] }} HistoryPoint */
/** @typedef {{ model: string, phase: string, name: string, points: HistoryPoint[] }} HistorySeries */
/** @typedef {{ title: string, facts: [string, string][], notes: string[], series: HistorySeries[], table: WordTable | null }} History */
/** @typedef {{ model: string, phase: string, lines: HistorySeries[] }} Chart */

/** @param {HistorySeries[]} series @returns {Chart[]} */
export function charts(series) {
  /** @type {Map<string, Chart>} */
  const found = new Map();
  for (const one of series) {
    const key = JSON.stringify([one.model, one.phase]);
    const chart = found.get(key) ?? { model: one.model, phase: one.phase, lines: [] };
    chart.lines.push(one);
    found.set(key, chart);
  }
  return [...found.values()];
}

// All commits by their first recording; those without a time come last.
/** @param {HistorySeries[]} series @returns {string[]} */
export function commitsByTime(series) {
  /** @type {Map<string, number>} */
  const first = new Map();
  for (const { commit, runs } of series.flatMap(({ points }) => points)) {
    const times = runs.map(({ at }) => at ?? Infinity);
    if (commit !== null) first.set(commit, Math.min(first.get(commit) ?? Infinity, ...times));
  }
  const inOrder = [...first].sort(([a, one], [b, other]) => (one === other ? (a < b ? -1 : 1) : one - other));
  return inOrder.map(([commit]) => commit);
}

// What a commit is called where there is little room: its hash, or else the version.
/** @param {string} commit */
export function shortName(commit) {
  const [version, hash] = commit.split(" ");
  return hash === undefined || hash.startsWith("lib") ? version : hash;
}

// Whether all words are in what a chart's line is called.
/** @param {HistorySeries} series @param {string} text */
export function isWanted({ model, phase, name }, text) {
  const all = `${model} ${phase} ${name}`.toLowerCase();
  return text.toLowerCase().split(/\s+/).every((word) => all.includes(word));
}
