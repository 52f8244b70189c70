// A recording of a processor and a device: both are in sight when the page opens.

import assert from "node:assert/strict";
import { drawn } from "./browser.mjs";
import { textsOn, watchCanvases } from "./texts.mjs";
import { labels, pixels, rowAt, stage } from "./timeline.mjs";

const BACKENDS = ["CUDA0", "CPU"];

export const sides = {
  "all backends are in sight, streams and threads are folded": async (page) => {
    const box = await stage(page);
    assert.ok(box.y + box.height <= 900, `the timeline ends at ${box.y + box.height}`);
    // Rows that are out of sight have no name here.
    const rows = await labels(page);
    for (const backend of BACKENDS) {
      const own = rows.slice(rows.indexOf(backend) + 1);
      assert.match(own[0] ?? "", /^ops/, `${backend} in ${rows}`);
    }
    assert.ok(!rows.some((row) => /^(stream|thread) \d+/.test(row) && !/^stream \d+$/.test(row)), rows.join());
  },
  "colours are those of ops, from far away as well": async (page) => {
    const hex = (colour) => `#${colour.match(/\d+/g).map((part) => Number(part).toString(16).padStart(2, "0")).join("")}`;
    const ops = (await page.locator(".legend .chip .swatch").evaluateAll((all) => all.map((one) => getComputedStyle(one).backgroundColor))).map(hex);
    const box = await stage(page);
    const rows = await labels(page);
    for (const backend of BACKENDS) {
      const own = rows[rows.indexOf(backend) + 1];
      const nth = rows.slice(0, rows.indexOf(backend)).filter((row) => row === own).length;
      // Near the lower edge, where every bar is.
      const y = (await rowAt(page, own, nth)) + 3;
      const colours = await pixels(page, ".stage canvas.under", box.x + 140, y, Math.floor(box.width - 150), 1);
      const drawn = colours.filter((colour) => !colour.includes("/"));
      const ofOps = drawn.filter((colour) => ops.includes(colour));
      // The rest are lines of the ruler, and edges of bars are between two pixels.
      assert.ok(ofOps.length > 100 && drawn.length - ofOps.length < 10, `${backend}: ${[...new Set(drawn)]}`);
      const faint = colours.filter((colour) => colour.includes("/") && !colour.endsWith("/0"));
      assert.ok(faint.length < ofOps.length / 2, `${backend}: ${faint.length} of ${ofOps.length}`);
    }
  },
  "no time on the ruler is cut off": async (page) => {
    await watchCanvases(page);
    const { width } = await stage(page);
    for (const span of ["Fit", "100 ms", "10 ms", "1 ms"]) {
      await page.locator(".buttons").getByText(span, { exact: true }).click();
      await drawn(page);
      const texts = await textsOn(page, ".stage canvas.under");
      const cut = texts.filter((text) => text.left + text.width > width + 1);
      assert.ok(texts.length > 10, span);
      assert.deepEqual(cut, [], span);
    }
  },
  "tables stand close below the findings, and nothing covers another": async (page) => {
    const titles = await page.locator(".overview h2").allInnerTexts();
    assert.ok(titles.includes("Copies by tensors and memory"), titles.join());
    for (const height of [700, 2600]) {
      await page.setViewportSize({ width: 1440, height });
      await drawn(page);
      const boxes = await page.locator(".overview > section").evaluateAll((sections) => sections.map((section) => {
        const { top, height } = section.getBoundingClientRect();
        return { top, bottom: top + height, hidden: section.scrollHeight - section.clientHeight };
      }));
      // Findings and budgets stand side by side.
      let end = Math.max(...boxes.slice(0, 2).map(({ bottom }) => bottom));
      assert.ok(boxes.length >= 4);
      for (const { top, bottom, hidden } of boxes.slice(2)) {
        assert.ok(top >= end && top - end < 40 && hidden <= 0, JSON.stringify(boxes));
        end = bottom;
      }
    }
  },
  "names of roofs do not cover each other": async (page) => {
    await watchCanvases(page);
    await page.getByRole("tab", { name: "Roofline" }).click();
    await drawn(page);
    const roofs = async () => (await textsOn(page, ".roofline")).filter(({ text }) => /^\w+: .*B\/s, .*FLOP\/s$/.test(text));
    const apart = (one, other) => Math.abs(one.y - other.y) >= 12 || one.left > other.left + other.width || other.left > one.left + one.width;
    const check = async () => {
      const all = await roofs();
      assert.equal(all.length, BACKENDS.length, JSON.stringify(all));
      const height = (await page.locator(".roofline").boundingBox()).height;
      all.forEach((one, at) => {
        assert.ok(one.left >= 0 && one.y > 0 && one.y < height, JSON.stringify(one));
        all.slice(0, at).forEach((other) => assert.ok(apart(one, other), JSON.stringify([one, other])));
      });
    };
    await check();
    // The same roof for both.
    for (const backend of BACKENDS) {
      await page.getByLabel(`Peak GB/s of ${backend}`).fill("1000");
      await page.getByLabel(`Peak GFLOP/s of ${backend}`).fill("50000");
    }
    await drawn(page);
    await check();
  },
};
