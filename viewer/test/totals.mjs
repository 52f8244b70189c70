// The totals of a page as the viewer's scripts work them out, by operation and backend, as JSON:
// `totals.mjs PAGE`. Needs no browser.

import { readFile } from "node:fs/promises";
import { readEmbedded } from "../data/embedded.js";
import { Recording } from "../data/recording.js";
import { statistics } from "../data/statistics.js";

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
const rows = statistics(recording, "op", null, null).rows.flatMap((op) => op.children().map((row) => ({
  op: op.name,
  backend: row.name,
  count: row.count,
  ...(row.isTimed ? times(row) : {}),
})));
console.log(JSON.stringify(rows));
