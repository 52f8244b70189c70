// The page of many recordings: charts, what they tell, and what can be chosen. Argument: the page.

import assert from "node:assert/strict";

import { closeBrowser, drawn, openPlain } from "./browser.mjs";

const { page, faults } = await openPlain(process.argv[2], "main canvas");
await drawn(page);

// One model and phase, two devices; the same figures in the table.
assert.equal(await page.locator("main section").count(), 1);
assert.equal(await page.locator("main .key > span").count(), 2);
assert.equal(await page.locator("tbody tr").count(), 4);
assert.match(await page.locator("table").textContent(), /1\.0 ccc/);

// What the chart says at the first place where it tells of this.
async function told(wanted) {
  return page.evaluate((wanted) => {
    const canvas = document.querySelector("main canvas");
    const { left, top, width, height } = canvas.getBoundingClientRect();
    for (let x = 60; x < width; x += 6) {
      for (let y = 20; y < height - 30; y += 6) {
        canvas.dispatchEvent(new PointerEvent("pointermove", { clientX: left + x, clientY: top + y }));
        const text = document.querySelector("main .told").textContent;
        if (text.includes(wanted)) return text;
      }
    }
    return `nothing tells of ${wanted}`;
  }, wanted);
}
assert.match(await told("GPU0, 1.0 ccc"), /5 recordings\), -27\.8% against the recordings before; recorded 2026-09-30/);
assert.match(await told("GPU0, 1.0 bbb"), /against the recordings before, which may be noise/);

// Names that try to be markup are text.
assert.match(await page.locator("main .key").textContent(), /<img src=x/);
assert.equal(await page.evaluate(() => window.hacked), undefined);

// By day, and only one of the devices.
await page.locator("select").selectOption("time");
await page.locator("input[type=search]").fill("gpu0 PP8");
await drawn(page);
assert.equal(await page.locator("main .key > span").count(), 1);
assert.match(await told("GPU0, 1.0 ccc"), /-27/);
await page.locator("input[type=search]").fill("nothing of this name");
assert.equal(await page.locator("main section").count(), 0);

assert.deepEqual(faults, []);
console.log("history: two lines, a change that is told, filter and axis");
await closeBrowser();
