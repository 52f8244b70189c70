// The page opens on an overview, and what is clicked there is shown on the timeline.

import assert from "node:assert/strict";
import { drawn } from "./browser.mjs";

export const overview = {
  async "the page opens on findings, budgets and a map of layers"(page) {
    assert.equal(await page.getByRole("tab", { name: "Overview" }).getAttribute("aria-selected"), "true");
    assert.ok((await page.locator(".budget").count()) > 0);
    for (const bar of await page.locator(".stacked").all()) {
      const parts = await bar.locator("i").evaluateAll((parts) => parts.map((part) => parseFloat(part.style.width)));
      assert.ok(Math.abs(parts.reduce((sum, part) => sum + part, 0) - 100) < 0.01, `parts of a phase add up: ${parts}`);
    }
    assert.ok((await page.locator(".findings li, .healthy, .nothing-found").count()) > 0);
    assert.ok((await page.locator(".strip .cell").count()) > 1);
  },

  async "a click on a phase selects its time"(page) {
    await page.locator(".plainly").first().click();
    await drawn(page);
    await page.waitForFunction(() => location.hash.includes("range="));
  },

  async "a click on a layer goes to its first op on that backend"(page) {
    const cell = page.getByRole("button", { name: /^layer 3 on / }).first();
    const backend = (await cell.getAttribute("aria-label")).split(" on ")[1];
    await cell.click();
    await drawn(page);
    const told = await page.locator(".details").innerText();
    assert.match(told, /layer\s+3 /);
    assert.ok(told.includes(backend), told);
  },

  async "every backend is in sight, and streams are folded"(page) {
    const { rows, below } = await page.evaluate(() => {
      const stage = document.querySelector(".stage");
      return { rows: parseFloat(stage.style.getPropertyValue("--rows")), below: stage.getBoundingClientRect().bottom };
    });
    assert.ok(rows > 0 && below <= 900, `${rows} ${below}`);
  },
};
