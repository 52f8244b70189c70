// Requests as rows, as a list, and as something to search for.

import assert from "node:assert/strict";
import { drawn, hash } from "./browser.mjs";
import { caption, clickName, hatched, hover, rowAt, xOf } from "./timeline.mjs";

const US = 1000;

const found = (page) => page.locator(".search output").innerText();

async function search(page, text) {
  await page.getByLabel("Search events").fill(text);
  await drawn(page);
}

export const requests = {
  "a request is a row in two parts": async (page) => {
    const tip = async (row, time) => hover(page, await xOf(page, time * US), await rowAt(page, row));
    assert.match(await tip("requests 1", 500), /^request 0 · 2 ms\nprompt of 7 tokens; first token after 1 ms\n2 generated; longest wait 1 ms, for/);
    assert.match(await tip("requests 2", 700), /^request 1 · 1 ms\nprompt of 1 tokens; first token after 1 ms\n1 generated\n/);
    await page.mouse.click(await xOf(page, 1500 * US), await rowAt(page, "requests 1"));
    await drawn(page);
    assert.equal((await hash(page)).get("range"), "1000000-2000000");
  },
  "closed, the group counts them": async (page) => {
    const inFlight = async (time) => hover(page, await xOf(page, time * US), await rowAt(page, "in flight"));
    await clickName(page, "Requests");
    assert.equal(await inFlight(300), "1 in flight");
    assert.equal(await inFlight(800), "2 in flight");
  },
  "the list goes to a request and to a stall": async (page) => {
    await page.getByRole("tab", { name: "Requests" }).click();
    const lines = page.locator(".tabpanel:not([hidden]) tbody tr");
    const cells = await lines.evaluateAll((all) => all.map((row) => [...row.cells].map((cell) => cell.innerText)));
    assert.deepEqual(cells.map((row) => row.length), [12, 12, 5]);
    assert.deepEqual(cells[0].slice(2, 8), ["7", "0", "1", "1 ms", "2", "1,000 t/s"]);
    assert.deepEqual(cells[2].slice(2, 4), ["1 ms", "800 µs"]);
    await lines.nth(1).click();
    await drawn(page);
    assert.equal((await hash(page)).get("range"), "500000-1500000");
    assert.equal((await hash(page)).get("search"), "request:1");
    assert.match(await found(page), /^1 found/);
    await page.getByRole("tab", { name: "Statistics" }).click();
    assert.match(await caption(page), /^1 event found by the search in the selected 1 ms/);
  },
  "times and requests are searched for": async (page) => {
    await search(page, "request:0");
    assert.match(await found(page), /^6 found/);
    await search(page, "request:7");
    assert.equal(await found(page), "no match");
    await search(page, "from:1ms");
    assert.match(await found(page), /^2 found/);
    await search(page, "from:90us to:1ms");
    assert.match(await found(page), /^4 found/);
    // This recording knows no clock: what cannot be told apart is all there.
    await search(page, "from:14:03");
    assert.match(await found(page), /^7 found/);
  },
};

export const gapped = {
  "what was not recorded is hatched and not idle": async (page) => {
    assert.ok(await hatched(page, 1000 * US), "there are no lines in the gap");
    assert.ok(!(await hatched(page, 300 * US)), "there are lines beside the gap");
    await page.getByRole("tab", { name: "Idle times" }).click();
    assert.match(await page.locator(".tabpanel:not([hidden])").innerText(), /^No backend was idle/);
  },
};
