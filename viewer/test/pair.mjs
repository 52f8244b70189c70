// Two recordings on one page: what one frame shows and selects, the other does too. Argument: the page.

import assert from "node:assert/strict";

import { closeBrowser, openPair } from "./browser.mjs";

const { page, frames: [a, b], faults } = await openPair(process.argv[2]);
assert.ok((await page.locator("main table").count()) >= 2, "what changed stands below");

/** What is selected, without the times, which differ. */
const tensor = async (frame) => /tensor(.*?)backend/.exec((await frame.locator(".details").textContent()) ?? "")?.[1];
const selects = (frame, name) => frame.waitForFunction((name) => document.querySelector(".details")?.textContent?.includes(`tensor${name}backend`), name);

await a.locator(".stage canvas").last().focus();
for (const key of [".", ".", "."]) await page.keyboard.press(key);
await a.waitForFunction(() => document.querySelector(".details")?.textContent?.includes("tensor"));
const first = await tensor(a);
await selects(b, first);

// And the other way round.
await b.locator(".stage canvas").last().focus();
await page.keyboard.press(".");
await b.waitForFunction((first) => !document.querySelector(".details")?.textContent?.includes(`tensor${first}backend`), first);
await selects(a, await tensor(b));

await page.keyboard.press("Escape");
await a.waitForFunction(() => !document.querySelector(".details")?.textContent?.includes("tensor"));
assert.deepEqual(faults, []);
console.log("linked: selection both ways, and nothing went wrong");
await closeBrowser();
