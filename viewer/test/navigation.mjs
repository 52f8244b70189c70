// Moving about: wheel, drag, keys, buttons, minimap, the address, scrolling, fingers.

import assert from "node:assert/strict";
import { drawn, hash, viewOf } from "./browser.mjs";
import { drag, GUTTER, labels, rowAt, stage } from "./timeline.mjs";

const length = ({ start, end }) => end - start;

export const navigation = {
  "the wheel zooms at the pointer": async (page) => {
    const box = await stage(page);
    const before = await viewOf(page);
    await page.mouse.move(box.x + GUTTER + (box.width - GUTTER) / 4, box.y + 100);
    await page.mouse.wheel(0, -400);
    const after = await viewOf(page);
    assert.ok(length(after) < length(before) * 0.8);
    const at = (view) => view.start + length(view) / 4;
    assert.ok(Math.abs(at(after) - at(before)) < length(before) / 1000);
  },
  "shift and the wheel, or a sideways wheel, move": async (page) => {
    await page.keyboard.press("w");
    const before = await viewOf(page);
    const box = await stage(page);
    await page.mouse.move(box.x + 700, box.y + 100);
    await page.keyboard.down("Shift");
    await page.mouse.wheel(0, 100);
    await page.keyboard.up("Shift");
    const after = await viewOf(page);
    assert.ok(after.start > before.start && Math.abs(length(after) - length(before)) <= 2);
    await page.mouse.wheel(-100, 0);
    assert.ok(Math.abs((await viewOf(page)).start - before.start) <= 2);
  },
  "dragging moves": async (page) => {
    await page.keyboard.press("w");
    const before = await viewOf(page);
    const box = await stage(page);
    await drag(page, [box.x + 900, box.y + 100], [box.x + 700, box.y + 100]);
    const after = await viewOf(page);
    assert.ok(Math.abs(after.start - before.start - (length(before) * 200) / (box.width - GUTTER)) < length(before) / 500);
  },
  "W, S, A, D and F": async (page) => {
    const whole = await viewOf(page);
    for (let times = 0; times < 4; times += 1) await page.keyboard.press("w");
    const near = await viewOf(page);
    assert.ok(length(near) < length(whole) / 3);
    await page.keyboard.press("d");
    const right = await viewOf(page);
    assert.ok(right.start > near.start);
    await page.keyboard.press("a");
    assert.ok((await viewOf(page)).start < right.start);
    await page.keyboard.press("s");
    assert.ok(length(await viewOf(page)) > length(near));
    await page.keyboard.press("f");
    assert.deepEqual(await viewOf(page), whole);
  },
  "F fits the range, and again everything": async (page) => {
    const whole = await viewOf(page);
    const box = await stage(page);
    await drag(page, [box.x + 400, box.y + 10], [box.x + 600, box.y + 10]);
    await page.keyboard.press("f");
    const near = await viewOf(page);
    assert.equal((await hash(page)).get("range"), `${near.start}-${near.end}`);
    await page.mouse.dblclick(box.x + 700, box.y + 100);
    assert.deepEqual(await viewOf(page), whole);
  },
  "there is an end to zooming": async (page) => {
    for (let times = 0; times < 90; times += 1) await page.keyboard.press("w");
    assert.ok(length(await viewOf(page)) >= 19);
    for (let times = 0; times < 90; times += 1) await page.keyboard.press("s");
    assert.equal((await viewOf(page)).start, 0);
  },
  "buttons choose how much is shown": async (page) => {
    const whole = await viewOf(page);
    for (const [name, ns] of [["10 ms", 1e7], ["1 ms", 1e6], ["100 µs", 1e5]]) {
      await page.getByRole("button", { name: `Show ${name}`, exact: true }).click();
      assert.ok(Math.abs(length(await viewOf(page)) - ns) <= 2);
    }
    // As much as there is.
    for (const name of ["1 s", "100 ms"]) {
      await page.getByRole("button", { name: `Show ${name}`, exact: true }).click();
      assert.deepEqual(await viewOf(page), whole);
      await page.keyboard.press("w");
    }
    await page.getByRole("button", { name: "Show the whole recording" }).click();
    assert.deepEqual(await viewOf(page), whole);
  },
  "the minimap chooses, moves and centres what is shown": async (page) => {
    const box = await page.locator(".minimap").boundingBox();
    const y = box.y + 20;
    await drag(page, [box.x + 400, y], [box.x + 600, y]);
    const chosen = await viewOf(page);
    const wide = box.width - GUTTER;
    assert.ok(Math.abs(chosen.start / (chosen.end - chosen.start) - (400 - GUTTER) / 200) < 0.05);
    await drag(page, [box.x + 500, y], [box.x + 700, y]);
    const moved = await viewOf(page);
    assert.ok(moved.start > chosen.start && Math.abs(length(moved) - length(chosen)) <= 2);
    await page.mouse.click(box.x + GUTTER + wide / 4, y);
    const centred = await viewOf(page);
    assert.ok(centred.start < moved.start && Math.abs(length(centred) - length(chosen)) <= 2);
  },
  "the address keeps the state": async (page) => {
    const box = await stage(page);
    await drag(page, [box.x + 400, box.y + 10], [box.x + 900, box.y + 10]);
    await page.keyboard.press("f");
    await page.getByLabel("Search events").fill("op:rope");
    await page.keyboard.press("Enter");
    const before = await hash(page);
    for (const name of ["view", "range", "selected", "search"]) assert.notEqual(before.get(name), null, name);
    await page.reload();
    await page.waitForSelector(".statistics tbody tr", { state: "attached" });
    assert.equal(await page.getByLabel("Search events").inputValue(), "op:rope");
    assert.match(await page.locator(".details").innerText(), /^ROPE/);
    assert.equal(String(await hash(page)), String(before));
  },
  "an address that makes no sense does no harm": async (page) => {
    const url = (await page.evaluate(() => location.href)).split("#")[0];
    await page.goto(`${url}#view=9-3&range=x&selected=99999999&peak=7:1:1&peak=a`);
    await page.reload();
    await page.waitForSelector(".statistics tbody tr", { state: "attached" });
    assert.deepEqual([...(await hash(page)).keys()], ["view"]);
    assert.equal((await viewOf(page)).start, 0);
  },
};

export const smallWindow = {
  "rows scroll under those that stay": async (page) => {
    const before = await labels(page);
    assert.ok(!before.includes("Host"), before.join());
    const box = await stage(page);
    await page.mouse.move(box.x + 20, box.y + 100);
    await page.mouse.wheel(0, 2000);
    await drawn(page);
    const after = await labels(page);
    assert.deepEqual(after.slice(0, 4), before.slice(0, 4));
    assert.ok(after.includes("Sensors") && after.includes("package-0 W"), after.join());
    // Dragging downwards goes back up.
    await drag(page, [box.x + 500, box.y + box.height - 60], [box.x + 500, box.y + box.height + 900]);
    assert.deepEqual(await labels(page), before);
  },
  "nothing is cut off": async (page) => {
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth));
    assert.ok((await stage(page)).height >= 140);
    await page.keyboard.press(".");
    await page.waitForSelector(".details dl");
    await page.getByRole("tab", { name: "Roofline" }).click();
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth));
  },
};

export const touch = {
  "fingers pan, pinch and tap": async (page) => {
    const fingers = await touching(page);
    const box = await stage(page);
    const y = await rowAt(page, "ops 1");
    const whole = await viewOf(page);
    await fingers("touchStart", [600, y], [800, y]);
    await fingers("touchMove", [500, y], [900, y]);
    await fingers("touchMove", [400, y], [1000, y]);
    await fingers("touchEnd");
    const near = await viewOf(page);
    assert.ok(Math.abs(length(near) - length(whole) / 3) < length(whole) / 50, JSON.stringify(near));
    await fingers("touchStart", [900, y]);
    await fingers("touchMove", [800, y]);
    await fingers("touchMove", [700, y]);
    await fingers("touchEnd");
    const moved = await viewOf(page);
    assert.ok(moved.start > near.start && Math.abs(length(moved) - length(near)) <= 2);
    await page.keyboard.press("f");
    await drawn(page);
    // Somewhere in the first op of the row.
    await page.touchscreen.tap(box.x + GUTTER + ((box.width - GUTTER) * 250) / 1900, y);
    await drawn(page);
    assert.match(await page.locator(".details").innerText(), /^MUL_MAT/);
  },
  "of three fingers one can be lifted": async (page) => {
    const fingers = await touching(page);
    const y = await rowAt(page, "ops 1");
    const whole = await viewOf(page);
    await fingers("touchStart", [500, y], [700, y], [900, y]);
    await fingers("touchEnd", [900, y, 2]);
    await fingers("touchMove", [400, y], [800, y]);
    await fingers("touchEnd");
    const near = await viewOf(page);
    assert.ok(Math.abs(length(near) - length(whole) / 2) < length(whole) / 50, JSON.stringify(near));
  },
};

// Places are of the first finger, the second and so on, or of the one that they name.
async function touching(page) {
  const session = await page.context().newCDPSession(page);
  return (type, ...places) => session.send("Input.dispatchTouchEvent", { type, touchPoints: places.map(([x, y, id], at) => ({ x, y, id: id ?? at })) });
}
