// Two recordings on one page: what one frame shows and selects, the other does too. Argument: the page.

import assert from "node:assert/strict";

import { closeBrowser, openPair } from "./browser.mjs";

const { page, frames: [a, b], faults } = await openPair(process.argv[2]);
assert.ok((await page.locator("main table").count()) >= 2, "what changed stands below");

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
console.log("linked: selection both ways, and nothing went wrong");
await closeBrowser();
