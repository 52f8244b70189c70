// Moving about: wheel, drag, keys, buttons, minimap, ruler, the address.

import assert from "node:assert/strict";
import { drawn, hash, stage, viewOf } from "./browser.mjs";

export const navigation = {
  "the wheel zooms at the pointer": async (page) => {
    const box = await stage(page);
    const before = await viewOf(page);
    const x = box.x + 132 + (box.width - 132) / 4;
    await page.mouse.move(x, box.y + 100);
    await page.mouse.wheel(0, -400);
    const after = await viewOf(page);
    assert.ok(after.end - after.start < (before.end - before.start) * 0.8);
    const at = (view) => view.start + (view.end - view.start) / 4;
    assert.ok(Math.abs(at(after) - at(before)) < (before.end - before.start) / 1000);
  },
  "shift and the wheel move sideways": async (page) => {
    await page.keyboard.press("w");
    const before = await viewOf(page);
    const box = await stage(page);
    await page.mouse.move(box.x + 700, box.y + 100);
    await page.keyboard.down("Shift");
    await page.mouse.wheel(0, 100);
    await page.keyboard.up("Shift");
    const after = await viewOf(page);
    assert.ok(after.start > before.start && Math.abs(after.end - after.start - (before.end - before.start)) <= 2);
  },
  "dragging moves": async (page) => {
    await page.keyboard.press("w");
    const before = await viewOf(page);
    await drag(page, [900, 100], [700, 100]);
    assert.ok((await viewOf(page)).start > before.start);
  },
  "W, S, A, D and F": async (page) => {
    const whole = await viewOf(page);
    for (let times = 0; times < 4; times += 1) await page.keyboard.press("w");
    const near = await viewOf(page);
    assert.ok(near.end - near.start < (whole.end - whole.start) / 3);
    await page.keyboard.press("d");
    const right = await viewOf(page);
    assert.ok(right.start > near.start);
    await page.keyboard.press("a");
    assert.ok((await viewOf(page)).start < right.start);
    await page.keyboard.press("s");
    assert.ok((await viewOf(page)).end - (await viewOf(page)).start > near.end - near.start);
    await page.keyboard.press("f");
    assert.deepEqual(await viewOf(page), whole);
  },
  "buttons choose how much is shown": async (page) => {
    await page.getByRole("button", { name: "Show 10 ms" }).click();
    const view = await viewOf(page);
    assert.ok(Math.abs(view.end - view.start - 1e7) <= 2);
    await page.getByRole("button", { name: "Show 100 µs" }).click();
    const near = await viewOf(page);
    assert.ok(Math.abs(near.end - near.start - 1e5) <= 2);
    await page.getByRole("button", { name: "Show the whole recording" }).click();
    assert.equal((await viewOf(page)).start, 0);
  },
  "the minimap chooses and moves what is shown": async (page) => {
    const box = await page.locator(".minimap").boundingBox();
    const y = box.y + 20;
    await dragOn(page, [box.x + 400, y], [box.x + 600, y]);
    const chosen = await viewOf(page);
    assert.ok(chosen.start > 0);
    await dragOn(page, [box.x + 500, y], [box.x + 700, y]);
    const moved = await viewOf(page);
    assert.ok(moved.start > chosen.start && Math.abs(moved.end - moved.start - (chosen.end - chosen.start)) <= 2);
  },
  "the address keeps the state": async (page) => {
    await page.getByRole("button", { name: "Show 1 ms" }).click();
    await page.getByLabel("Search events").fill("op:rope");
    const before = await hash(page);
    await page.reload();
    await page.waitForSelector(".statistics tbody tr");
    assert.equal(await page.getByLabel("Search events").inputValue(), "op:rope");
    assert.equal((await hash(page)).get("view"), before.get("view"));
  },
  "a group collapses and a lane is pinned": async (page) => {
    const before = await picture(page);
    const box = await stage(page);
    // Phases and graph runs are above the first group.
    await page.mouse.click(box.x + 30, box.y + 24 + 20 + 18 + 10);
    await drawn(page);
    const collapsed = await picture(page);
    assert.notEqual(collapsed, before);
    await page.mouse.click(box.x + 30, box.y + 24 + 20 + 18 + 10);
    await drawn(page);
    await page.mouse.click(box.x + 30, box.y + 24 + 20 + 18 + 20 + 12);
    await drawn(page);
    const pinned = await picture(page);
    assert.notEqual(pinned, before);
    assert.notEqual(pinned, collapsed);
  },
};

function picture(page) {
  return page.evaluate(() => document.querySelector(".stage canvas.under").toDataURL());
}

async function drag(page, from, to) {
  const box = await stage(page);
  await dragOn(page, [box.x + from[0], box.y + from[1]], [box.x + to[0], box.y + to[1]]);
}

async function dragOn(page, from, to) {
  await page.mouse.move(...from);
  await page.mouse.down();
  await page.mouse.move((from[0] + to[0]) / 2, to[1]);
  await page.mouse.move(...to);
  await page.mouse.up();
}
