// A picture of a page as people use it, an op selected and a row opened: `picture.mjs PAGE OUT`.

import { closeBrowser, drawn, openPage } from "./browser.mjs";

// An op of a generated token, far enough in for a typical one.
const SEARCH = "phase:tg op:norm";
const STEPS = 40;
const STEPS_BACK = 6;

const [, , file, out] = process.argv;
const { page, faults } = await openPage(file, { viewport: { width: 1440, height: 900 } });
await page.getByLabel("Search events").fill(SEARCH);
for (let step = 0; step < STEPS; step += 1) await page.keyboard.press("Enter");
// Out of the search box, and what was searched for is no longer.
for (let times = 0; times < 2; times += 1) await page.keyboard.press("Escape");
await drawn(page);
await page.keyboard.press("f");
await drawn(page);
for (let step = 0; step < STEPS_BACK; step += 1) await page.keyboard.press("s");
const rows = page.locator(".statistics tbody tr");
await rows.nth(0).getByRole("button").click();
await rows.nth(1).getByRole("button").click();
await page.mouse.move(0, 0);
await drawn(page);
await page.screenshot({ path: out });
await closeBrowser();
if (faults.length > 0) throw new Error(faults.join("\n"));
