// All checks on a page, each on a fresh load: `run.mjs PAGE HOSTILE LIMITED`.
//
// HOSTILE is a page whose names try to be markup; it has to open, show them and do nothing.
// LIMITED draws only some of its events.

import assert from "node:assert/strict";
import { openPage } from "./browser.mjs";
import { navigation } from "./navigation.mjs";
import { selection } from "./selection.mjs";
import { tables } from "./tables.mjs";

const [, , file, hostile, limited] = process.argv;

const whole = {
  "hostile names are shown and do nothing": async () => {
    const { browser, page, faults } = await openPage(hostile);
    await page.keyboard.press(".");
    await page.waitForSelector(".details dl");
    await page.getByRole("tab", { name: "Idle times" }).click();
    await page.waitForTimeout(200);
    assert.deepEqual(faults, []);
    assert.equal(await page.locator("img, iframe, svg, object").count(), 0);
    assert.ok((await page.locator(".details").innerText()).includes("<img"));
    assert.equal(await page.evaluate(() => window.hacked), undefined);
    await browser.close();
  },
  "fewer are drawn, all are counted": async () => {
    const { browser, page } = await openPage(limited);
    assert.match(await page.locator("header").innerText(), /Only the 100 longest of 2,592 events are drawn/);
    assert.match(await page.locator(".bar .faint").innerText(), /^2,592 events/);
    await browser.close();
  },
};

let failed = 0;
for (const [name, check] of Object.entries({ ...navigation, ...selection, ...tables })) {
  const { browser, page, faults } = await openPage(file);
  await attempt(name, async () => {
    await check(page);
    assert.deepEqual(faults, []);
  });
  await browser.close();
}
for (const [name, check] of Object.entries(whole)) await attempt(name, check);
process.exit(failed > 0 ? 1 : 0);

async function attempt(name, check) {
  try {
    await check();
    console.log(`ok: ${name}`);
  } catch (error) {
    failed += 1;
    console.log(`FAILED: ${name}\n${error.stack}`);
  }
}
