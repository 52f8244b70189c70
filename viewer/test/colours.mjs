// Colours: of ops, switched, and light or dark.

import assert from "node:assert/strict";
import { drawn } from "./browser.mjs";
import { picture, pixel, rowAt, stage } from "./timeline.mjs";

export const colours = {
  "by operation, backend, layer and efficiency, with a key": async (page) => {
    const seen = new Set();
    for (const [by, key] of [["op", ""], ["backend", "CUDA0"], ["layer", "no layer"], ["efficiency", "80–100%"]]) {
      await page.getByLabel("Colour by").selectOption(by);
      await drawn(page);
      seen.add(await picture(page));
      seen.add(await picture(page, ".minimap canvas.under"));
      assert.ok((await page.locator(".legend .key").innerText()).includes(key), by);
    }
    assert.equal(seen.size, 8);
    // The long first attention.
    const place = [".stage canvas.under", Math.round((await stage(page)).x + 170), Math.round((await rowAt(page, "ops 1")) + 8)];
    await page.getByLabel("Colour by").selectOption("op");
    await drawn(page);
    assert.equal(await pixel(page, ...place), "#ee6677");
    await page.getByLabel("Colour by").selectOption("backend");
    await drawn(page);
    assert.equal(await pixel(page, ...place), "#4477aa");
  },
  "light and dark follow the system, also on the canvas": async (page) => {
    const back = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    await page.emulateMedia({ colorScheme: "light" });
    await drawn(page);
    const [light, lightPicture] = [await back(), await picture(page)];
    await page.emulateMedia({ colorScheme: "dark" });
    await drawn(page);
    assert.notEqual(await back(), light);
    assert.notEqual(await picture(page), lightPicture);
  },
  "text can be read: contrast of at least 4.5 to 1": async (page) => {
    for (const colorScheme of ["light", "dark"]) {
      await page.emulateMedia({ colorScheme });
      const ratios = await page.evaluate(() => {
        const style = getComputedStyle(document.documentElement);
        const luminance = (name) => {
          const hex = style.getPropertyValue(`--${name}`).trim();
          const [r, g, b] = [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16) / 255).map((part) => (part <= 0.04 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
          return 0.2126 * r + 0.7152 * g + 0.0722 * b;
        };
        const ratio = (a, b) => (Math.max(luminance(a), luminance(b)) + 0.05) / (Math.min(luminance(a), luminance(b)) + 0.05);
        return ["text", "faint", "accent"].flatMap((text) => ["back", "panel"].map((back) => ratio(text, back)));
      });
      assert.ok(ratios.every((ratio) => ratio >= 4.5), `${colorScheme}: ${ratios}`);
    }
  },
};
