// The roofline plot, with peaks that were seen and peaks that are given.

import assert from "node:assert/strict";
import { drawn, hash } from "./browser.mjs";
import { picture } from "./timeline.mjs";

const told = (page) => page.locator(".told").innerText();

async function open(page) {
  await page.getByRole("tab", { name: "Roofline" }).click();
  await drawn(page);
}

// Looks for a dot as a person does, along lines across the plot.
async function findDot(page) {
  const box = await page.locator(".roofline").boundingBox();
  for (let y = box.y + 20; y < box.y + box.height - 40; y += 6) {
    for (let x = box.x + 70; x < box.x + box.width - 20; x += 12) {
      await page.mouse.move(x, y);
      if (/GFLOP\/s, .* GB\/s/.test(await told(page))) return [x, y];
    }
  }
  return null;
}

export const roofline = {
  "each op and shape is a dot that can be pointed at and clicked": async (page) => {
    await open(page);
    const place = await findDot(page);
    assert.notEqual(place, null);
    const text = await told(page);
    assert.match(text, /^\w+ on CUDA0 \[/);
    await page.mouse.click(...place);
    await drawn(page);
    assert.match(await page.locator(".search output").innerText(), /found/);
    await page.getByRole("tab", { name: "Statistics" }).click();
    await page.locator(".statistics tbody tr", { hasText: text.split(" ")[0] }).first().getByRole("button").click();
    await drawn(page);
  },
  "peaks can be given, and stay in the address": async (page) => {
    await open(page);
    const field = page.getByLabel("Peak GB/s of CUDA0");
    assert.equal(await field.inputValue(), "");
    assert.ok(Number(await field.getAttribute("placeholder")) > 100);
    const before = await picture(page, ".roofline");
    await field.fill("4800");
    await page.getByLabel("Peak GFLOP/s of CUDA0").fill("60000");
    await drawn(page);
    const given = await picture(page, ".roofline");
    assert.notEqual(given, before);
    assert.equal((await hash(page)).get("peak"), "0:4800:60000");
    await page.reload();
    await page.waitForSelector(".statistics tbody tr", { state: "attached" });
    await open(page);
    assert.equal(await page.getByLabel("Peak GB/s of CUDA0").inputValue(), "4800");
    assert.equal(await picture(page, ".roofline"), given);
    // Emptied, it is the best that was seen again.
    await page.getByLabel("Peak GB/s of CUDA0").fill("");
    await page.getByLabel("Peak GFLOP/s of CUDA0").fill("");
    await drawn(page);
    assert.equal(await picture(page, ".roofline"), before);
    assert.equal((await hash(page)).get("peak"), null);
  },
  "given peaks change what is efficient": async (page) => {
    await page.getByLabel("Colour by").selectOption("efficiency");
    await open(page);
    const before = await picture(page);
    await page.getByLabel("Peak GB/s of CUDA0").fill("100");
    await drawn(page);
    assert.notEqual(await picture(page), before);
  },
};
