// Selecting events and ranges, searching, the legend, arrows.

import assert from "node:assert/strict";
import { drawn, hash, selectedOf } from "./browser.mjs";
import { caption, drag, GUTTER, hover, number, pixel, rowAt, stage } from "./timeline.mjs";

const search = (page) => page.getByLabel("Search events");
const found = (page) => page.locator(".search output").innerText();

async function searched(page, text) {
  await search(page).fill(text);
  await drawn(page);
  return found(page);
}

export const selection = {
  "a click selects and the panel describes": async (page) => {
    // Some way in, where there is room on both sides.
    for (let times = 0; times < 30; times += 1) {
      await page.keyboard.press(".");
      await drawn(page);
    }
    await page.waitForSelector(".details dl");
    const first = await selectedOf(page);
    const text = await page.locator(".details").innerText();
    for (const word of ["tensor", "backend", "layer", "phase", "graph run", "start", "duration", "output", "source 0", "bytes", "operations", "GB/s", "GFLOP/s", "measured by", "calls of this shape", "slower than"]) assert.ok(text.includes(word), word);
    assert.equal(await page.locator(".histogram i.own").count(), 1);
    await page.keyboard.press(".");
    assert.ok((await selectedOf(page)) > first);
    await page.keyboard.press(",");
    assert.equal(await selectedOf(page), first);
    await page.keyboard.press("f");
    const box = await stage(page);
    const [middle, y] = [box.x + GUTTER + (box.width - GUTTER) / 2, await rowAt(page, "ops 1")];
    await page.keyboard.press("Escape");
    assert.equal(await selectedOf(page), -1);
    assert.notEqual(await hover(page, middle, y), "");
    await page.mouse.click(middle, y);
    assert.equal(await selectedOf(page), first);
  },
  "a range recomputes the statistics": async (page) => {
    const before = await caption(page);
    const box = await stage(page);
    await drag(page, [box.x + 400, box.y + 10], [box.x + 600, box.y + 12]);
    const after = await caption(page);
    assert.ok(after.includes("in the selected"), after);
    assert.ok(number(after) < number(before));
    await page.keyboard.press("Escape");
    await drawn(page);
    assert.equal(await caption(page), before);
    await page.keyboard.down("Shift");
    await drag(page, [box.x + 400, box.y + 100], [box.x + 600, box.y + 100]);
    await page.keyboard.up("Shift");
    assert.equal(await caption(page), after);
    // A click on the ruler ends it as well.
    await page.mouse.click(box.x + 500, box.y + 10);
    await drawn(page);
    assert.equal(await caption(page), before);
  },
  "search counts, steps and clears": async (page) => {
    await page.keyboard.press("/");
    await page.keyboard.type("op:MUL_MAT dur>8us");
    await drawn(page);
    assert.match(await found(page), /^[\d,]+ found, [\d.]+ ms$/);
    const some = number(await found(page));
    await page.keyboard.press("Enter");
    const first = await selectedOf(page);
    await page.keyboard.press("Enter");
    assert.ok((await selectedOf(page)) > first);
    await page.keyboard.press("Shift+Enter");
    assert.equal(await selectedOf(page), first);
    await page.getByRole("button", { name: "Next match" }).click();
    assert.ok((await selectedOf(page)) > first);
    await page.getByRole("button", { name: "Previous match" }).click();
    assert.equal(await selectedOf(page), first);
    const all = number(await searched(page, "op:MUL_MAT"));
    assert.equal(number(await searched(page, "op:MUL_MAT dur<8us")) + some, all);
    assert.equal(number(await searched(page, "mul_mat")), all);
    assert.ok(number(await searched(page, "layer:3 backend:cuda -op:rope")) > 0);
    assert.ok(number(await searched(page, "tensor:Qcur-3 phase:tg24 shape:2048")) > 0);
    assert.equal(await searched(page, "no such thing"), "no match");
    await page.keyboard.press("Escape");
    await page.keyboard.press("Escape");
    await drawn(page);
    assert.equal(await search(page).inputValue(), "");
  },
  "Enter steps to what was typed in the same frame": async (page) => {
    await page.evaluate(() => {
      const input = document.getElementById("search");
      input.focus();
      input.value = "op:rope";
      input.dispatchEvent(new InputEvent("input", { bubbles: true }));
      input.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
    });
    await drawn(page);
    assert.match(await page.locator(".details").innerText(), /^ROPE/);
  },
  "what is not searched steps back": async (page) => {
    // The first attention is long enough to be seen from afar.
    const place = [".stage canvas.under", (await stage(page)).x + 180, (await rowAt(page, "ops 1")) + 8];
    assert.equal(await pixel(page, ...place), "#ee6677");
    await searched(page, "op:rope");
    assert.match(await pixel(page, ...place), /\/38$/);
    await searched(page, "op:flash");
    assert.equal(await pixel(page, ...place), "#ee6677");
  },
  "an arrow leads from a copy to the op that waits for it": async (page) => {
    await searched(page, "op:copy_");
    await page.keyboard.press("Enter");
    await drawn(page);
    assert.match(await page.locator(".details").innerText(), /waited for by/);
    await page.getByRole("button", { name: "Show 1 ms" }).click();
    await drawn(page);
    const y = Math.round((await rowAt(page, "ops 2")) - (await stage(page)).y);
    // Nothing else is drawn in the row between them.
    const between = () => page.evaluate((y) => {
      const canvas = document.querySelector(".stage canvas.over");
      const { data } = canvas.getContext("2d").getImageData(133, y, canvas.width - 133, 1);
      return data.filter((value, at) => at % 4 === 3 && value > 128).length;
    }, y);
    await page.mouse.move(0, 0);
    await drawn(page);
    assert.ok((await between()) > 0);
    await page.keyboard.press("Escape");
    await page.keyboard.press("Escape");
    await page.keyboard.press("Escape");
    await drawn(page);
    assert.equal(await between(), 0);
  },
  "the legend hides and isolates": async (page) => {
    const all = number(await caption(page));
    const chip = page.locator(".chip").first();
    await chip.click();
    await drawn(page);
    assert.equal(await chip.getAttribute("aria-pressed"), "false");
    const fewer = number(await caption(page));
    assert.ok(fewer < all);
    await chip.click();
    await chip.click({ modifiers: ["Shift"] });
    await drawn(page);
    assert.equal(number(await caption(page)), all - fewer);
    assert.equal(await page.locator(".statistics tbody tr").count(), 1);
    await chip.click({ modifiers: ["Shift"] });
    await drawn(page);
    assert.equal(number(await caption(page)), all);
  },
  "the address has no search after Esc": async (page) => {
    await searched(page, "op:rope");
    await page.keyboard.press("Escape");
    await page.keyboard.press("Escape");
    assert.equal((await hash(page)).get("search"), null);
  },
};
