// All checks, each on a fresh load: `run.mjs EXAMPLE SIDES EVERYTHING HOSTILE LIMITED DAMAGED GAPPED [NAME]`.
//
// EXAMPLE is a real recording, SIDES one of a CPU and a GPU, EVERYTHING a made-up one with all that recordings can have. The
// names of HOSTILE try to be markup, LIMITED draws only some of its events, of DAMAGED a part is
// missing, and of GAPPED some graph runs were not recorded. With NAME only the checks run whose names contain it.

import assert from "node:assert/strict";
import { closeBrowser, openPage } from "./browser.mjs";
import { colours } from "./colours.mjs";
import { depth } from "./depth.mjs";
import { experts } from "./experts.mjs";
import { keyboard } from "./keyboard.mjs";
import { lanes, realLanes } from "./lanes.mjs";
import { navigation, smallWindow, touch } from "./navigation.mjs";
import { damaged, hostile, limited } from "./pages.mjs";
import { overview } from "./overview.mjs";
import { gapped, requests } from "./requests.mjs";
import { readable } from "./readable.mjs";
import { roofline } from "./roofline.mjs";
import { selection } from "./selection.mjs";
import { sides } from "./sides.mjs";
import { tables } from "./tables.mjs";

const [, , example, sidesPage, everything, hostilePage, limitedPage, damagedPage, gappedPage, wanted = ""] = process.argv;

const SUITES = [
  [overview, example, { overview: true, viewport: { width: 1440, height: 900 } }], [navigation, example], [selection, example], [tables, example], [roofline, example], [depth, example], [keyboard, example], [colours, example], [realLanes, example],
  [sides, sidesPage, { overview: true, viewport: { width: 1440, height: 900 } }], [readable, sidesPage, { overview: true, viewport: { width: 1440, height: 900 } }],
  [readable, everything, { viewport: { width: 1500, height: 1600 } }],
  [lanes, everything, { viewport: { width: 1500, height: 1600 } }], [smallWindow, everything, { viewport: { width: 640, height: 480 } }], [touch, everything, { hasTouch: true }],
  [experts, everything], [requests, everything, { viewport: { width: 1500, height: 1600 } }], [gapped, gappedPage],
  [hostile, hostilePage], [limited, limitedPage], [damaged, damagedPage],
];

// Checks wait more than they work: some at a time.
const AT_ONCE = 3;

let failed = 0;
const list = SUITES.flatMap(([checks, file, options]) => Object.entries(checks).map(([name, check]) => ({ name, check, file, options })));
const left = list.filter(({ name }) => name.includes(wanted));
await Promise.all(Array.from({ length: AT_ONCE }, async () => {
  while (left.length > 0) await attempt(left.shift());
}));
await closeBrowser();
process.exit(failed > 0 ? 1 : 0);

async function attempt({ name, check, file, options }) {
  const { page, faults, close } = await openPage(file, options);
  try {
    await check(page, faults);
    assert.deepEqual(faults, []);
    console.log(`ok: ${name}`);
  } catch (error) {
    failed += 1;
    console.log(`FAILED: ${name}\n${error.stack}`);
  }
  await close();
}
