// Finding one's way on the timeline's canvases, as people do: by pointing and reading.

import { drawn, viewOf } from "./browser.mjs";

export const GUTTER = 132;
export const RULER = 24;
const IN_GUTTER = 40;
// Less than half of the lowest row.
const STEP = 4;

export function stage(page) {
  return page.locator(".stage").boundingBox();
}

// The words at the pointer, after it moved there.
export async function hover(page, x, y) {
  await page.mouse.move(x, y);
  await drawn(page);
  const box = page.locator(".tooltip");
  return (await box.isVisible()) ? box.innerText() : "";
}

// The names of the rows from top to bottom, with the middle of each: what the tooltip says as
// the pointer goes down along them.
async function rows(page) {
  const { x, y, height } = await stage(page);
  const heights = [];
  for (let at = y + RULER + 2; at < y + height; at += STEP) heights.push(at);
  const words = await page.evaluate(async ([x, heights]) => {
    const canvas = document.querySelector(".stage canvas.over");
    const said = [];
    for (const y of heights) {
      canvas.dispatchEvent(new PointerEvent("pointermove", { clientX: x, clientY: y, pointerId: 1 }));
      await new Promise(requestAnimationFrame);
      const box = document.querySelector(".tooltip");
      said.push(box.hidden ? "" : box.firstChild.textContent);
    }
    return said;
  }, [x + IN_GUTTER, heights]);
  const found = [];
  words.forEach((label, at) => {
    const last = found[found.length - 1];
    if (last?.label === label) last.bottom = heights[at];
    else if (label !== "") found.push({ label, top: heights[at], bottom: heights[at] });
  });
  return found.map(({ label, top, bottom }) => ({ label, y: (top + bottom) / 2 }));
}

// Rows move only when names are clicked or the timeline scrolls; then `labels` looks anew.
const known = new WeakMap();

export async function labels(page) {
  known.set(page, await rows(page));
  return known.get(page).map(({ label }) => label);
}

// The middle of the row with this name, or of a later one of the same name.
export async function rowAt(page, label, nth = 0) {
  if (!known.has(page)) await labels(page);
  return known.get(page).filter((row) => row.label === label)[nth].y;
}

export async function clickName(page, label) {
  await page.mouse.click((await stage(page)).x + IN_GUTTER, await rowAt(page, label));
  await drawn(page);
  known.delete(page);
}

// Where a time is, in nanoseconds after the first event.
export async function xOf(page, ns) {
  const box = await stage(page);
  const { start, end } = await viewOf(page);
  return box.x + GUTTER + ((ns - start) / (end - start)) * (box.width - GUTTER);
}

// The colours of a canvas in a rectangle of the page, as `#rrggbb`, with the opacity behind it
// where that is not full.
export function pixels(page, selector, x, y, width, height) {
  return page.evaluate(([selector, x, y, width, height]) => {
    const canvas = document.querySelector(selector);
    const box = canvas.getBoundingClientRect();
    const { data } = canvas.getContext("2d").getImageData(Math.round(x - box.left), Math.round(y - box.top), width, height);
    const colours = [];
    for (let at = 0; at < data.length; at += 4) {
      const hex = [...data.subarray(at, at + 3)].map((part) => part.toString(16).padStart(2, "0")).join("");
      colours.push(data[at + 3] === 255 ? `#${hex}` : `#${hex}/${data[at + 3]}`);
    }
    return colours;
  }, [selector, x, y, width, height]);
}

export async function pixel(page, selector, x, y) {
  return (await pixels(page, selector, x, y, 1, 1))[0];
}

// Whether there are slanted lines at a time, below all rows.
export async function hatched(page, ns) {
  const { y, height } = await stage(page);
  const row = async (at) => pixels(page, ".stage canvas.under", (await xOf(page, ns)) - 20, y + height - at, 40, 1);
  const [low, high] = [await row(6), await row(12)];
  const isMixed = (colours) => new Set(colours).size > 1;
  return isMixed(low) && isMixed(high) && low.join() !== high.join();
}

export function picture(page, selector = ".stage canvas.under") {
  return page.evaluate((selector) => document.querySelector(selector).toDataURL(), selector);
}

export async function drag(page, from, to) {
  await page.mouse.move(...from);
  await page.mouse.down();
  await page.mouse.move((from[0] + to[0]) / 2, (from[1] + to[1]) / 2);
  await page.mouse.move(...to);
  await page.mouse.up();
  await drawn(page);
}

export function caption(page) {
  return page.locator(".bar .faint").innerText();
}

// The first number of a text: `2,592 events` is 2592.
export function number(text) {
  return Number(/[\d,]+/.exec(text)[0].replaceAll(",", ""));
}
