// The plot of times over the length of the context.

import assert from "node:assert/strict";
import { drawn, hash } from "./browser.mjs";

const told = (page) => page.locator(".tabpanel:not([hidden]) .told").innerText();

// Looks for a dot as a person does, along lines across the plot.
async function findDot(page) {
  const box = await page.locator(".depth").boundingBox();
  for (let x = box.x + box.width - 20; x > box.x + 64; x -= 4) {
    for (let y = box.y + 26; y < box.y + box.height - 40; y += 8) {
      await page.mouse.move(x, y);
      if (/after [\d,]+ tokens/.test(await told(page))) return [x, y];
    }
  }
  return null;
}

export const depth = {
  "each run is a dot over its context, and a click shows the run": async (page) => {
    await page.getByRole("tab", { name: "Depth" }).click();
    await drawn(page);
    assert.match(await told(page), /^Each run of the generation, and its attention\. .* positions are not known/);
    const place = await findDot(page);
    assert.notEqual(place, null);
    assert.match(await told(page), /^[\d.]+ [mµ]?s for (a token|its attention) after 256 tokens$/);
    await page.mouse.click(...place);
    assert.notEqual((await hash(page)).get("view"), null);
  },
};
