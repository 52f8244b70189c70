// The map of experts, of a recording that has some.

import assert from "node:assert/strict";
import { drawn } from "./browser.mjs";

export const experts = {
  "experts are told by pointing at them": async (page) => {
    await page.getByRole("tab", { name: "Experts" }).click();
    await drawn(page);
    const maps = page.locator("canvas.experts");
    assert.ok((await maps.count()) > 0);
    const box = await maps.first().boundingBox();
    // The fourth of eight fields, in the first line.
    await page.mouse.move(box.x + 64 + ((box.width - 76) * 3.5) / 8, box.y + 18 + 9);
    const told = page.locator(".told", { hasText: "Expert" });
    assert.match(await told.innerText(), /^Expert 3 of layer 0: used 9 times, 64\.\d\s?% of all; 2 of 8 experts used in 7 of 7 tokens/);
    await page.mouse.move(box.x + 10, box.y + 10);
    assert.match(await page.locator(".told").filter({ visible: true }).innerText(), /Each line is a layer/);
  },
};
