// Pages that are special as a whole: hostile names, a limit to what is drawn, a damaged file.

import assert from "node:assert/strict";
import { drawn } from "./browser.mjs";
import { caption, hover, rowAt, stage } from "./timeline.mjs";

export const hostile = {
  "hostile names are shown and do nothing": async (page) => {
    await page.keyboard.press(".");
    await page.waitForSelector(".details dl");
    assert.ok((await page.locator(".details").innerText()).includes("<img"));
    const box = await stage(page);
    for (const row of ["ops", "stream 0", "tasks"]) {
      const y = await rowAt(page, row);
      for (let x = box.x + 140; x < box.x + 600; x += 40) await hover(page, x, y);
    }
    const rows = page.locator(".statistics tbody tr");
    for (let at = 0; at < 2; at += 1) await rows.nth(at).getByRole("button").click();
    for (const by of ["layer", "phase"]) await page.getByLabel("Group by").selectOption(by);
    for (const by of ["backend", "efficiency"]) await page.getByLabel("Colour by").selectOption(by);
    await page.getByLabel("Search events").fill("kernel:<img op:<img");
    await drawn(page);
    assert.match(await page.locator(".search output").innerText(), /^1 found/);
    for (const name of ["Idle times", "Roofline"]) await page.getByRole("tab", { name }).click();
    await page.waitForTimeout(200);
    assert.equal(await page.locator("img, iframe, svg, object").count(), 0);
    assert.equal(await page.evaluate(() => window.hacked), undefined);
  },
  "the page's policy keeps foreign code from running": async (page, faults) => {
    const ran = await page.evaluate(() => {
      const script = document.createElement("script");
      script.textContent = "window.hacked = 1";
      document.body.append(script);
      return window.hacked;
    });
    assert.equal(ran, undefined);
    assert.match(faults.splice(0).join(), /^Executing inline script violates the following Content Security Policy/);
  },
};

export const limited = {
  "fewer are drawn, all are counted": async (page) => {
    assert.match(await page.locator("header").innerText(), /Only the 100 longest of 2,592 events are drawn/);
    assert.match(await caption(page), /^2,592 events/);
  },
};

export const damaged = {
  "what is missing stands in a red bar": async (page) => {
    const bar = page.getByRole("alert");
    assert.ok(await bar.isVisible());
    assert.equal(await bar.evaluate((one) => getComputedStyle(one).backgroundColor), "rgb(179, 38, 30)");
    assert.match(await page.locator("header").innerText(), /recording\s+by ggml/);
    assert.match(await caption(page), /^\d+ events/);
  },
};
