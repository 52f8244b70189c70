// The tables below the timeline, and printing.

import assert from "node:assert/strict";
import { drawn, hash, viewOf } from "./browser.mjs";
import { drag, number, picture, stage } from "./timeline.mjs";

const rows = (page) => page.locator(".statistics tbody tr");

function names(page) {
  return page.locator(".statistics tbody tr td:first-child").allInnerTexts();
}

function column(page, at) {
  return page.locator(`.statistics tbody tr td:nth-child(${at + 1})`).allInnerTexts();
}

const UNITS = { s: 1e9, ms: 1e6, "µs": 1e3, ns: 1,
  "B/s": 1, "KB/s": 1e3, "MB/s": 1e6, "GB/s": 1e9, "TB/s": 1e12,
  "FLOP/s": 1, "KFLOP/s": 1e3, "MFLOP/s": 1e6, "GFLOP/s": 1e9, "TFLOP/s": 1e12,
};

// What a cell says, as a number; nothing is less than any number.
function value(text) {
  const [, figure, unit] = /^([\d.,]+)\s*(\S*)$/.exec(text) ?? [];
  return figure === undefined ? -1 : Number(figure.replaceAll(",", "")) * (UNITS[unit] ?? 1);
}

export const tables = {
  "every column sorts, both ways": async (page) => {
    const headers = page.locator(".statistics thead th");
    assert.equal(await headers.count(), 11);
    for (let at = 0; at < 11; at += 1) {
      const order = async (direction) => {
        await headers.nth(at).getByRole("button").click();
        assert.equal(await headers.nth(at).getAttribute("aria-sort"), direction);
        const cells = await column(page, at);
        const sorted = at === 0 ? [...cells].sort() : [...cells].sort((a, b) => value(a) - value(b));
        if (direction === "descending") sorted.reverse();
        const plain = (list) => (at === 0 ? list : list.map(value));
        assert.deepEqual(plain(cells), plain(sorted), `${at} ${direction}`);
      };
      const directions = at === 0 ? ["ascending", "descending"] : ["descending", "ascending"];
      for (const direction of directions) await order(direction);
    }
  },
  "rows open down to shapes, and highlight": async (page) => {
    const before = await rows(page).count();
    await rows(page).nth(0).getByRole("button").click();
    await rows(page).nth(1).getByRole("button").click();
    assert.ok((await rows(page).count()) > before + 1);
    assert.equal((await names(page))[1].trim().replace(/^\W+/, ""), "CUDA0");
    assert.match((await names(page))[2], /\[\d+/);
    // Parts add up.
    const counts = (await column(page, 3)).map(value);
    const shapes = (await rows(page).count()) - before - 1;
    assert.equal(counts.slice(2, 2 + shapes).reduce((sum, one) => sum + one, 0), counts[1]);
    const unmarked = await picture(page);
    await rows(page).nth(0).click();
    await drawn(page);
    assert.equal(await page.locator("tr.marked").count(), 1);
    assert.match(await page.locator(".search output").innerText(), /found/);
    assert.notEqual(await picture(page), unmarked);
    await rows(page).nth(0).click();
    await drawn(page);
    assert.equal(await page.locator("tr.marked").count(), 0);
    assert.equal(await picture(page), unmarked);
  },
  "the tree is also by layer and by phase": async (page) => {
    for (const [by, first] of [["layer", /layer \d+|no layer/], ["phase", /tg24/]]) {
      await page.getByLabel("Group by").selectOption(by);
      await drawn(page);
      assert.match((await names(page)).join(), first);
      const total = value((await column(page, 3))[0]);
      const closed = await rows(page).count();
      await rows(page).nth(0).getByRole("button").click();
      const opened = (await rows(page).count()) - closed;
      assert.ok((await names(page)).slice(1, 1 + opened).some((name) => name.includes("MUL_MAT")));
      assert.equal((await column(page, 3)).slice(1, 1 + opened).map(value).reduce((sum, one) => sum + one, 0), total);
    }
    assert.match((await names(page)).join(), /no phase|tg24/);
  },
  "the table is copied as markdown": async (page) => {
    await page.evaluate(() => {
      Object.defineProperty(navigator, "clipboard", { value: { writeText: (text) => (window.copied = text) } });
    });
    await rows(page).nth(0).getByRole("button").click();
    await page.getByRole("button", { name: "Copy the table as markdown" }).click();
    const lines = (await page.evaluate(() => window.copied)).trim().split("\n");
    assert.match(lines[0], /^\| Name \| % wall \| Total \| Count \| Avg \| Min \| p50 \| p95 \| Max \| Memory \| Compute \|$/);
    assert.equal(lines.length, 2 + (await rows(page).count()));
    const cells = await rows(page).nth(0).locator("td").allInnerTexts();
    assert.equal(lines[2], `| MUL\\_MAT | ${cells.slice(1).join(" | ")} |`);
  },
  "idle times lead to their place, and are those of the range": async (page) => {
    await page.getByRole("tab", { name: "Idle times" }).click();
    const first = page.locator(".gaps tbody tr").first();
    const cells = () => first.locator("td").allInnerTexts();
    const [whole] = await cells();
    const before = await picture(page, ".stage canvas.over");
    await first.click();
    await drawn(page);
    const view = await viewOf(page);
    assert.ok(Math.abs(value(whole) * 2 - (view.end - view.start)) < (view.end - view.start) / 50);
    assert.notEqual(await picture(page, ".stage canvas.over"), before);
    // The list stays: it is of the whole recording until a range is selected.
    assert.equal((await cells())[0], whole);
    assert.equal((await hash(page)).get("range"), null);
    await page.keyboard.press("Escape");
    await page.keyboard.press("f");
    await drawn(page);
    const box = await stage(page);
    await drag(page, [box.x + 400, box.y + 10], [box.x + 500, box.y + 10]);
    const [start, end] = (await hash(page)).get("range").split("-").map(Number);
    const [length, share, , from] = await cells();
    assert.ok(value(length) < value(whole) && value(length) <= end - start);
    assert.ok(Math.abs(number(share) / 100 - value(length) / (end - start)) < 0.02);
    assert.ok(value(from) >= start * 0.99 && value(from) <= end * 1.01);
  },
  "printing gives the tables": async (page) => {
    await page.emulateMedia({ media: "print" });
    for (const shown of [".statistics", ".gaps", ".roofline"]) assert.ok(await page.locator(shown).isVisible(), shown);
    for (const hidden of [".toolbar", ".legend", ".tabs nav"]) assert.ok(!(await page.locator(hidden).isVisible()), hidden);
    await page.evaluate(() => window.addEventListener("afterprint", () => (window.printed = document.querySelectorAll(".gaps tbody tr").length)));
    assert.ok((await page.pdf()).length > 20_000);
    // Filled for the paper although nobody opened it.
    assert.ok((await page.evaluate(() => window.printed)) > 10);
    await page.emulateMedia({ media: "screen" });
    assert.ok(!(await page.locator(".gaps").isVisible()));
  },
};
