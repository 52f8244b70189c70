// The tables below the timeline, help, printing.

import assert from "node:assert/strict";
import { drawn, hash } from "./browser.mjs";

export const tables = {
  "every column sorts": async (page) => {
    const titles = await page.locator(".statistics thead th").count();
    assert.equal(titles, 11);
    for (let at = 0; at < titles; at += 1) {
      const header = page.locator(".statistics thead th").nth(at);
      await header.getByRole("button").click();
      const once = await names(page);
      assert.notEqual(await header.getAttribute("aria-sort"), "none");
      await header.getByRole("button").click();
      assert.notDeepEqual(await names(page), once);
    }
  },
  "rows open down to shapes, and highlight": async (page) => {
    const rows = page.locator(".statistics tbody tr");
    const before = await rows.count();
    await rows.nth(0).getByRole("button").click();
    await rows.nth(1).getByRole("button").click();
    assert.ok((await rows.count()) > before + 1);
    assert.match(await rows.nth(2).locator("td").first().innerText(), /\[\d+/);
    await rows.nth(0).click();
    await drawn(page);
    assert.ok((await page.locator("tr.marked").count()) === 1);
    assert.match(await page.locator(".search output").innerText(), /found/);
    await page.getByLabel("Group by").selectOption("layer");
    await drawn(page);
    assert.match((await names(page)).join(), /layer 3/);
    await page.getByLabel("Group by").selectOption("phase");
    await drawn(page);
    assert.match((await names(page)).join(), /tg24/);
  },
  "the table is copied as markdown": async (page) => {
    await page.evaluate(() => {
      Object.defineProperty(navigator, "clipboard", { value: { writeText: (text) => (window.copied = text) } });
    });
    await page.getByRole("button", { name: "Copy the table as markdown" }).click();
    const text = await page.evaluate(() => window.copied);
    assert.match(text, /^\| Name \| % wall \| Total/);
    assert.match(text, /\n\| MUL\\_MAT \| /);
  },
  "idle times lead to their place": async (page) => {
    await page.getByRole("tab", { name: "Idle times" }).click();
    await page.locator(".gaps tbody tr").first().click();
    assert.notEqual((await hash(page)).get("range"), null);
  },
  "the roofline has dots": async (page) => {
    await page.getByRole("tab", { name: "Roofline" }).click();
    const colours = await page.evaluate(() => {
      const canvas = document.querySelector(".roofline");
      const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      const seen = new Set();
      for (let at = 0; at < data.length; at += 4) seen.add((data[at] << 16) | (data[at + 1] << 8) | data[at + 2]);
      return seen.size;
    });
    assert.ok(colours > 10);
  },
  "? shows the keys, Esc closes them": async (page) => {
    await page.keyboard.press("?");
    assert.ok(await page.getByRole("dialog").isVisible());
    await page.keyboard.press("Escape");
    assert.ok(!(await page.getByRole("dialog").isVisible()));
  },
  "printing gives the tables": async (page) => {
    await page.emulateMedia({ media: "print" });
    assert.ok(await page.locator(".statistics").isVisible());
    assert.ok(await page.locator(".gaps").isVisible());
    assert.ok(!(await page.locator(".toolbar").isVisible()));
  },
  "light and dark follow the system": async (page) => {
    const back = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    await page.emulateMedia({ colorScheme: "light" });
    const light = await back();
    await page.emulateMedia({ colorScheme: "dark" });
    assert.notEqual(await back(), light);
  },
};

function names(page) {
  return page.locator(".statistics tbody tr td:first-child").allInnerTexts();
}
