// What the timeline shows, on a recording that has everything; its times are in microseconds.

import assert from "node:assert/strict";
import { drawn, hash, selectedOf } from "./browser.mjs";
import { textsOn, watchCanvases } from "./texts.mjs";
import { caption, clickName, hover, labels, number, pixel, pixels, rowAt, xOf } from "./timeline.mjs";

const US = 1000;
const TOP = ["phases 1", "phases 2", "graph runs 1", "graph runs 2", "tokens/s"];
const REQUESTS = ["Requests", "requests 1", "requests 2"];
const FOLDED = ["streams, 3 lanes", "2 threads"];
const GPU = ["ops 1", "ops 2", "copies", FOLDED[0], "stream 0", "stream 1 · 1", "stream 1 · 2", "GB/s", "GFLOP/s"];
const BELOW = ["Host", "tasks", "Memory", "CPU", "GPU0", "Sensors", "GPU 0 W", "GPU 0 MHz", "package-0 W"];
const CPU = ["ops", FOLDED[1], "thread 0", "thread 1", "GB/s", "GFLOP/s"];

async function point(page, row, time, nth = 0) {
  return hover(page, await xOf(page, time * US), await rowAt(page, row, nth));
}

async function click(page, row, time, nth = 0) {
  await page.mouse.click(await xOf(page, time * US), await rowAt(page, row, nth));
  await drawn(page);
}

// Streams, and threads beside another backend, are folded at first.
async function unfold(page) {
  for (const name of FOLDED) await clickName(page, name);
}

export const lanes = {
  "every kind of row is there, and groups collapse": async (page) => {
    const folded = (rows) => rows.filter((row) => !/^(stream|thread) \d/.test(row));
    assert.deepEqual(await labels(page), [...TOP, ...REQUESTS, "GPU0", ...folded(GPU), "CPU", ...folded(CPU), ...BELOW]);
    await unfold(page);
    assert.deepEqual(await labels(page), [...TOP, ...REQUESTS, "GPU0", ...GPU, "CPU", ...CPU, ...BELOW]);
    await clickName(page, "GPU0");
    assert.deepEqual(await labels(page), [...TOP, ...REQUESTS, "GPU0", "all", "CPU", ...CPU, ...BELOW]);
    // What is in the group can still be pointed at.
    assert.match(await point(page, "all", 500), /^RMS_NORM\+MUL/);
    assert.match(await point(page, "all", 300), /^ADD/);
    // What ran on behind it is there again when that is over.
    assert.match(await point(page, "all", 380), /^MUL_MAT/);
    await clickName(page, "GPU0");
    assert.deepEqual(await labels(page), [...TOP, ...REQUESTS, "GPU0", ...GPU, "CPU", ...CPU, ...BELOW]);
  },
  "rows are pinned to the top and back": async (page) => {
    await unfold(page);
    await clickName(page, "thread 1");
    await clickName(page, "GFLOP/s");
    assert.deepEqual((await labels(page)).slice(0, 8), [...TOP, "GPU0 GFLOP/s", "CPU thread 1", "Requests"]);
    await clickName(page, "CPU thread 1");
    assert.deepEqual((await labels(page)).slice(0, 7), [...TOP, "GPU0 GFLOP/s", "Requests"]);
  },
  "real times: what overlaps is side by side, and gaps are empty": async (page) => {
    assert.match(await point(page, "ops 1", 300), /^MUL_MAT 300 µs\nQcur-0/);
    assert.match(await point(page, "ops 2", 300), /^ADD 100 µs\nffn_out-0/);
    assert.equal(await point(page, "ops 1", 800), "");
    assert.equal(await pixel(page, ".stage canvas.under", await xOf(page, 300 * US), await rowAt(page, "ops 1")), "#4477aa");
    assert.match(await point(page, "graph runs 1", 700), /^graph run 1\n1 ms, 7 tokens/);
    assert.match(await point(page, "graph runs 2", 700), /^graph run 2\n1 ms, 1 token\n/);
    assert.match(await point(page, "phases 2", 700), /^tg1 · 1,000 t\/s/);
  },
  "a fused op names its parts": async (page) => {
    const [left, right] = [await xOf(page, 422 * US), await xOf(page, 618 * US)];
    const colours = new Set(await pixels(page, ".stage canvas.under", left, (await rowAt(page, "ops 1")) + 6, Math.floor(right - left), 1));
    // The bar's own colour and that of its second part.
    assert.ok(colours.has("#ccbb44") && colours.has("#44bb99"), [...colours].join());
    await click(page, "ops 1", 500);
    const text = await page.locator(".fusion").innerText();
    assert.match(text, /RMS_NORM\s+MUL\s+fused: one measurement for all/);
  },
  "threads show work and waiting": async (page) => {
    await unfold(page);
    assert.match(await point(page, "thread 1", 700), /this thread: 150 µs of work, then 140 µs waiting \(48.3%\)/);
    assert.match(await point(page, "thread 0", 700), /this thread: 300 µs of work, then 0 ns waiting/);
    const y = (await rowAt(page, "thread 1")) - 8;
    const column = async (time) => (await pixels(page, ".stage canvas.under", await xOf(page, time * US), y, 1, 16)).filter((colour) => colour === "#4477aa").length;
    // Work fills the row, waiting is a thin line, and then there is nothing.
    assert.ok((await column(800)) > 6);
    assert.ok([1, 2].includes(await column(900)));
    assert.equal(await column(960), 0);
    await click(page, "thread 1", 700);
    assert.match(await page.locator(".details").innerText(), /threads\s+2, busiest 300 µs, 23.7% of their time waiting/);
  },
  "counters give rates, of what overlaps the sum": async (page) => {
    assert.equal(await point(page, "tokens/s", 300), "7,000 t/s");
    assert.equal(await point(page, "tokens/s", 800), "8,000 t/s");
    assert.equal(await point(page, "tokens/s", 1700), "1,250 t/s");
    // 4 MiB of weights and what goes with them in 400 µs.
    assert.equal(await point(page, "GB/s", 1200), "10.5 GB/s");
    assert.equal(await point(page, "GB/s", 1600, 1), "7 GB/s");
    assert.match(await point(page, "GFLOP/s", 1200), /^5.24 GFLOP\/s$/);
  },
  "memory of each device stands below": async (page) => {
    // The group of each backend has the device's name as well.
    assert.equal(await point(page, "GPU0", 100, 1), "537 MB");
    assert.equal(await point(page, "GPU0", 800, 1), "805 MB");
    assert.equal(await point(page, "GPU0", 1500, 1), "537 MB");
    assert.equal(await point(page, "CPU", 1000, 1), "16.8 MB");
    assert.equal(await point(page, "CPU", 1950, 1), "");
  },
  "power and clocks stand below": async (page) => {
    assert.equal(await point(page, "GPU 0 W", 500), "300 W");
    assert.equal(await point(page, "GPU 0 W", 1200), "450 W");
    assert.equal(await point(page, "GPU 0 MHz", 500), "1.98 GHz");
    assert.equal(await point(page, "package-0 W", 400), "");
    assert.equal(await point(page, "package-0 W", 800), "100 W");
    // Behind the last reading nothing is known.
    assert.equal(await point(page, "GPU 0 W", 1700), "");
  },
  "a call that only starts the work has no rate": async (page) => {
    assert.equal(await point(page, "GB/s", 5), "");
    await click(page, "copies", 5);
    const text = await page.locator(".details").innerText();
    assert.match(text, /^copy_H2D/);
    assert.match(text, /1 MB/);
    assert.match(text, /no rate can be told/);
    assert.doesNotMatch(text, /GB\/s/);
    const row = await page.locator(".statistics tbody tr", { hasText: "copy_H2D" }).locator("td").allInnerTexts();
    assert.deepEqual(row.slice(-2), ["", ""]);
  },
  "streams show kernels, and the panel lists them": async (page) => {
    await unfold(page);
    assert.match(await point(page, "stream 0", 300), /^mul_mat_q 200 µs\nkernel on stream 0 for MUL_MAT Qcur-0\nfirst use/);
    assert.equal(await point(page, "stream 0", 175), "");
    assert.match(await point(page, "stream 1 · 2", 275), /^add_f32 100 µs\nkernel on stream 1 for ADD ffn_out-0\n∥ beside other work/);
    await click(page, "stream 1 · 1", 250);
    assert.equal(await selectedOf(page), 1);
    const cells = await page.locator(".kernels tbody tr").evaluateAll((all) => all.map((row) => [...row.cells].map((cell) => cell.innerText.split("\n")[0])));
    assert.deepEqual(cells, [["quantize_q8_1", "0", "50 µs", "20.0%"], ["mul_mat_q", "0", "200 µs", "80.0%"], ["mul_mat_q", "1", "100 µs", "0.0%"]]);
    assert.match(await page.locator(".kernels tr.marked").innerText(), /∥ beside other work/);
    // Time between kernels and overlapping time do not count.
    assert.match(await page.locator(".details").innerText(), /of it counted\s+250 µs/);
    await page.locator(".kernels tbody tr").first().click();
    await drawn(page);
    assert.match(await page.locator(".kernels tr.marked").innerText(), /quantize_q8_1/);
    await page.getByLabel("Search events").fill("kernel:add_f");
    await drawn(page);
    assert.match(await page.locator(".search output").innerText(), /^1 found/);
  },
  "tasks of the host are drawn, or told of": async (page) => {
    assert.match(await point(page, "tasks", 175), /^pipeline compile 50 µs\nmul_mat_q\nthread 42/);
    assert.match(await page.locator("header").innerText(), /1 task of the host \(50 µs in all\) came before the first event/);
  },
  "heads of lanes tell of the selected range": async (page) => {
    await watchCanvases(page);
    const heads = async () => (await textsOn(page, ".stage canvas.under")).map(({ text }) => text).filter((text) => text.startsWith("computing"));
    await click(page, "graph runs 1", 1500);
    // Of 1,200 to 2,000 µs the device has the first 200, and the CPU 600.
    const range = "in the selected range";
    assert.deepEqual(await heads(), [`computing 25.0%   copying 0.0%   idle 75.0%   ${range}`, `computing 75.0%   copying 0.0%   idle 25.0%   ${range}`]);
    assert.deepEqual((await textsOn(page, ".stage canvas.over")).map(({ text, covers }) => [text, covers]), [["800 µs", true]]);
    await page.keyboard.press("Escape");
    await drawn(page);
    const whole = await heads();
    assert.ok(whole.length === 2 && whole.every((text) => !text.includes(range)), whole.join());
  },
  "a phase and a graph run select their time": async (page) => {
    await click(page, "graph runs 1", 1500);
    assert.equal((await hash(page)).get("range"), "1200000-2000000");
    assert.match(await caption(page), /^2 events in the selected 800 µs/);
    await click(page, "phases 1", 100);
    assert.equal((await hash(page)).get("range"), "0-1000000");
    // The table is that of the range: what began before counts, what begins at its end does not.
    assert.equal(number(await caption(page)), 5);
  },
  "legend and search reach the streams": async (page) => {
    await unfold(page);
    await page.locator(".chip", { hasText: "ADD" }).click();
    await drawn(page);
    assert.equal(await point(page, "stream 1 · 2", 275), "");
    assert.match(await point(page, "stream 1 · 1", 275), /^mul_mat_q/);
  },
};

export const realLanes = {
  "tokens per second include what is between the runs of a phase": async (page) => {
    const y = await rowAt(page, "tokens/s");
    const rates = [];
    for (let ms = 10; ms < 60; ms += 5) rates.push(number(await hover(page, await xOf(page, ms * 1000 * US), y)));
    // 24 tokens in 65 ms are 367 a second; the first took longer than the others.
    assert.ok(rates.every((rate) => rate > 200 && rate < 450), rates.join());
  },
};
