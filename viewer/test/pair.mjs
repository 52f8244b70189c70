// Two recordings on one page: what one frame shows and selects, the other does too. Argument: the page.

import assert from "node:assert/strict";

import { closeBrowser, openPair } from "./browser.mjs";

const { page, frames: [a, b], faults } = await openPair(process.argv[2]);
assert.ok((await page.locator("main table").count()) >= 2, "what changed stands below");

// Both show the same stretch from the same graph run on, although the second recording takes twice as long.
await page.evaluate(() => {
  window.told = [];
  window.addEventListener("message", ({ data }) => data?.view && window.told.push(data.view));
});
const press = async (frame, keys) => {
  await page.evaluate(() => void (window.told.length = 0));
  await frame.locator(".stage canvas").last().focus();
  for (const [at, key] of keys.entries()) {
    await page.keyboard.press(key);
    // Views that follow each other faster than they are drawn are told as one.
    await page.waitForFunction((count) => window.told.length >= count, at + 1);
  }
  return page.evaluate(() => window.told.at(-1));
};
const ofA = await press(a, ["w", "w", "w", "w"]);
// Away and back again: where it was, as soon as it has heard of it.
let ofB = await press(b, ["d", "a"]);
for (let more = 20; more > 0 && ofB.place.run !== ofA.place.run; more--) ofB = await press(b, ["d", "a"]);
assert.ok(ofA.place.run !== "" && !ofA.place.run.endsWith(":0"), `somewhere in the middle: ${ofA.place.run}`);
assert.equal(ofB.place.run, ofA.place.run);
assert.ok(Math.abs(ofB.place.since - ofA.place.since) <= 1000, `${ofB.place.since} and ${ofA.place.since} ns`);
assert.ok(Math.abs(ofB.span - ofA.span) <= 1000, `${ofB.span} and ${ofA.span} ns`);

/** Op and tensor of what is selected, without the times, which differ. */
const selected = async (frame) => ((await frame.locator(".details").textContent()) ?? "").split("backend")[0];
const selects = (frame, name) => frame.waitForFunction((name) => document.querySelector(".details")?.textContent?.split("backend")[0] === name, name);
const changes = (frame, name) => frame.waitForFunction((name) => document.querySelector(".details")?.textContent?.split("backend")[0] !== name, name);

const nothing = await selected(a);
await a.locator(".stage canvas").last().focus();
await page.keyboard.press(".");
await changes(a, nothing);
const first = await selected(a);
await selects(b, first);

// And the other way round.
await b.locator(".stage canvas").last().focus();
await page.keyboard.press(".");
await changes(b, first);
await selects(a, await selected(b));

await page.keyboard.press("Escape");
await selects(a, nothing);
assert.deepEqual(faults, []);
console.log("linked: selection both ways, the same stretch of the same graph run, and nothing went wrong");
await closeBrowser();
