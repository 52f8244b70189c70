// Selecting events and ranges, searching, the legend.

import assert from "node:assert/strict";
import { drawn, hash, stage } from "./browser.mjs";

export const selection = {
  "a click selects and the panel describes": async (page) => {
    // Some way in, where there is room on both sides.
    for (let times = 0; times < 30; times += 1) {
      await page.keyboard.press(".");
      await drawn(page);
    }
    await page.waitForSelector(".details dl");
    const first = Number((await hash(page)).get("selected"));
    const text = await page.locator(".details").innerText();
    for (const word of ["tensor", "backend", "duration", "output", "GB/s", "measured by", "calls of this shape"]) assert.ok(text.includes(word), word);
    await page.keyboard.press(".");
    assert.ok(Number((await hash(page)).get("selected")) > first);
    await page.keyboard.press(",");
    assert.equal(Number((await hash(page)).get("selected")), first);
    await page.keyboard.press("f");
    const box = await stage(page);
    const middle = box.x + 132 + (box.width - 132) / 2;
    const y = box.y + 24 + 20 + 18 + 20 + 12;
    await page.keyboard.press("Escape");
    assert.equal((await hash(page)).get("selected"), null);
    await page.mouse.move(middle, y);
    await drawn(page);
    assert.ok(await page.locator(".tooltip").isVisible());
    await page.mouse.click(middle, y);
    assert.equal(Number((await hash(page)).get("selected")), first);
  },
  "a range recomputes the statistics": async (page) => {
    const caption = page.locator(".bar .faint");
    const before = await caption.innerText();
    const box = await stage(page);
    await page.mouse.move(box.x + 400, box.y + 10);
    await page.mouse.down();
    await page.mouse.move(box.x + 600, box.y + 12);
    await page.mouse.up();
    await drawn(page);
    const after = await caption.innerText();
    assert.ok(after.includes("in the selected"), after);
    assert.ok(number(after) < number(before));
    await page.keyboard.press("Escape");
    await drawn(page);
    assert.equal(await caption.innerText(), before);
    await page.keyboard.down("Shift");
    await page.mouse.move(box.x + 400, box.y + 100);
    await page.mouse.down();
    await page.mouse.move(box.x + 600, box.y + 100);
    await page.mouse.up();
    await page.keyboard.up("Shift");
    await drawn(page);
    assert.ok((await caption.innerText()).includes("in the selected"));
  },
  "search counts, steps and clears": async (page) => {
    await page.keyboard.press("/");
    await page.keyboard.type("op:MUL_MAT dur>8us");
    await drawn(page);
    const found = page.locator(".search output");
    assert.match(await found.innerText(), /^[\d,]+ found, /);
    const some = number(await found.innerText());
    await page.keyboard.press("Enter");
    const first = Number((await hash(page)).get("selected"));
    await page.keyboard.press("Enter");
    const second = Number((await hash(page)).get("selected"));
    assert.ok(second > first);
    await page.keyboard.press("Shift+Enter");
    assert.equal(Number((await hash(page)).get("selected")), first);
    await page.getByLabel("Search events").fill("op:MUL_MAT");
    await drawn(page);
    assert.ok(number(await found.innerText()) > some);
    await page.getByLabel("Search events").fill("layer:3 backend:cuda -op:rope");
    await drawn(page);
    assert.ok(number(await found.innerText()) > 0);
    await page.getByLabel("Search events").fill("no such thing");
    await drawn(page);
    assert.equal(await found.innerText(), "no match");
    await page.keyboard.press("Escape");
    await page.keyboard.press("Escape");
    await drawn(page);
    assert.equal(await page.getByLabel("Search events").inputValue(), "");
  },
  "a copy leads to the op that waits for it": async (page) => {
    await page.getByLabel("Search events").fill("op:copy_");
    await drawn(page);
    await page.keyboard.press("Enter");
    await drawn(page);
    assert.match(await page.locator(".details").innerText(), /waited for by/);
  },
  "the legend hides and isolates": async (page) => {
    const caption = page.locator(".bar .faint");
    const all = number(await caption.innerText());
    const chip = page.locator(".chip").first();
    await chip.click();
    await drawn(page);
    assert.equal(await chip.getAttribute("aria-pressed"), "false");
    const fewer = number(await caption.innerText());
    assert.ok(fewer < all);
    await chip.click();
    await chip.click({ modifiers: ["Shift"] });
    await drawn(page);
    assert.equal(number(await caption.innerText()), all - fewer);
    assert.equal(await page.locator(".statistics tbody tr").count(), 1);
  },
  "colours by backend, layer and efficiency": async (page) => {
    const seen = new Set();
    for (const by of ["op", "backend", "layer", "efficiency"]) {
      await page.getByLabel("Colour by").selectOption(by);
      await drawn(page);
      seen.add(await page.evaluate(() => document.querySelector(".stage canvas.under").toDataURL()));
    }
    assert.equal(seen.size, 4);
  },
};

function number(text) {
  return Number(/[\d,]+/.exec(text)[0].replaceAll(",", ""));
}
