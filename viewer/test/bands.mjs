// Pages of several processes: `bands.mjs FEW MANY`, of two and of five processes.

import assert from "node:assert/strict";

import { closeBrowser, drawn, openPage, selectedOf } from "./browser.mjs";
import { clickName, hover, labels, rowAt, stage, xOf } from "./timeline.mjs";

const US = 1000;
const [, , few, many] = process.argv;
const inBand = ["GPU0", "ops", "copies", "GB/s"];
const isBand = (label) => label.startsWith("worker");

{
  const { page, faults } = await openPage(few);
  const rows = (await labels(page)).filter((label) => isBand(label) || inBand.includes(label));
  assert.deepEqual(rows, ["worker 1", ...inBand, "worker 2", ...inBand]);
  // Closed, a process has one row, in which its copies and ops can be pointed at and chosen.
  await clickName(page, "worker 1");
  const closed = (await labels(page)).filter((label) => isBand(label) || label === "all" || inBand.includes(label));
  assert.deepEqual(closed, ["worker 1", "all", "worker 2", ...inBand]);
  const [op, copy] = [await xOf(page, 50 * US), await xOf(page, 250 * US)];
  assert.match(await hover(page, op, await rowAt(page, "all")), /^MUL_MAT/);
  assert.match(await hover(page, copy, await rowAt(page, "all")), /^copy_H2D/);
  await page.mouse.click(op, await rowAt(page, "all"));
  await drawn(page);
  assert.equal(await selectedOf(page), 0);
  await clickName(page, "worker 1");
  assert.equal((await labels(page)).filter((label) => label === "GPU0").length, 2);
  // A pinned row says whose it is.
  await clickName(page, "GB/s");
  assert.ok((await labels(page)).includes("worker 1 GPU0 GB/s"));
  assert.deepEqual(faults, []);
}
{
  const { page, faults } = await openPage(many, { viewport: { width: 1500, height: 1400 } });
  const machine = (pid) => (pid < 5 ? " · A" : " · another machine, B");
  const rows = (await labels(page)).filter((label) => isBand(label) || label === "all" || inBand.includes(label));
  assert.deepEqual(rows, [1, 2, 3, 4, 5].flatMap((pid) => [`worker ${pid}${machine(pid)}`, "all"]));
  assert.ok((await stage(page)).height > 0);
  await clickName(page, "worker 3 · A");
  assert.equal((await labels(page)).filter((label) => label === "GPU0").length, 1);
  assert.deepEqual(faults, []);
}
console.log("bands: open, closed, pointed at, pinned");
await closeBrowser();
