// The totals of a page as the viewer's scripts work them out, as JSON: `totals.mjs PAGE`. `rows` are by
// operation and backend; `sums` are the times of operations that the rows of each grouping add up to, also
// where the first operation is hidden, and of a range and of a search. Needs no browser.

import { readFile } from "node:fs/promises";
import { readEmbedded } from "../data/embedded.js";
import { Recording } from "../data/recording.js";
import { Times } from "../layout/times.js";
import { EVERYTHING, GROUPINGS, statistics } from "../data/statistics.js";

const page = await readFile(process.argv[2], "utf8");
const [, embedded] = /id="recording">([^<]*)<\/script>/.exec(page) ?? [];
const recording = new Recording(await readEmbedded(embedded));
// Of calls that only start a copy, the reports have no times of the copy.
const times = (row) => ({
  total_ns: row.total,
  avg_ns: row.average,
  min_ns: row.min,
  p50_ns: row.p50,
  p95_ns: row.p95,
  max_ns: row.max,
  share_of_wall: row.share,
  gb_per_s: row.bandwidth,
  gflop_per_s: row.compute,
});
const all = statistics(recording, "op", EVERYTHING);
const rows = all.rows.flatMap((op) => op.children().map((row) => ({
  op: recording.opNames[op.path[0].key],
  backend: row.name,
  count: row.count,
  ...(row.isTimed ? times(row) : {}),
})));
const first = all.rows[0].path[0].key;

// Rows that contain operations open to them, and all rows together to shapes.
function sums(grouping, part) {
  const found = {};
  const add = (row) => {
    const op = row.path.find(({ level }) => level === "op");
    const name = recording.opNames[op?.key];
    if (op && row.leaf && !row.isTimed && row.estimated === 0) return;
    if (op && row.leaf) found[name] = (found[name] ?? 0) + row.total;
    else row.children().forEach(add);
  };
  statistics(recording, grouping, part).rows.forEach(add);
  return found;
}

const groupings = (part) => Object.fromEntries(Object.keys(GROUPINGS).map((grouping) => [grouping, sums(grouping, part)]));
// Of the rows as they are.
const tops = (part) => Object.fromEntries(Object.keys(GROUPINGS).map((grouping) => [grouping, statistics(recording, grouping, part).total]));
const hidden = { ...EVERYTHING, hidden: new Set([first]) };
const isWhole = (part) => statistics(recording, "op", part).whole;
// How long each backend worked, in a range that has all.
const everywhere = { start: -1, end: recording.wall + 1 };
const worked = new Times(recording);
const inAll = recording.backends.filter(({ busy }) => busy !== null).map((backend) => ({
  of: [backend.busy, backend.copying],
  inRange: [worked.within(backend, everywhere).busy, worked.within(backend, everywhere).copying],
}));
console.log(JSON.stringify({
  inAll,
  rows,
  hidden: recording.opNames[first],
  all: { sums: groupings(EVERYTHING), tops: tops(EVERYTHING) },
  rest: { sums: groupings(hidden), tops: tops(hidden) },
  whole: [EVERYTHING, hidden, { ...EVERYTHING, range: { start: 0, end: recording.wall } }, { ...EVERYTHING, searched: () => true }].map(isWhole),
}));
