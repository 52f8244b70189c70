// What is on the page can be read: light or dark, whatever is open.

import assert from "node:assert/strict";
import { drawn } from "./browser.mjs";
import { faintTexts, textsOn, watchCanvases } from "./texts.mjs";

const LEAST_CONTRAST = 4.5;

export const readable = {
  "every text has a contrast of 4.5 to 1, light and dark, on every tab": async (page) => {
    await watchCanvases(page);
    for (const colorScheme of ["dark", "light"]) {
      await page.emulateMedia({ colorScheme });
      for (const tab of await page.getByRole("tab").all()) {
        await tab.click();
        await drawn(page);
        assert.deepEqual(await faintTexts(page, LEAST_CONTRAST), [], `${colorScheme}, ${await tab.innerText()}`);
      }
    }
    assert.notEqual((await textsOn(page, ".stage canvas.under")).length, 0);
  },
  "plots change with the system as well": async (page) => {
    await watchCanvases(page);
    for (const tab of ["Roofline", "Depth"]) {
      await page.emulateMedia({ colorScheme: "light" });
      await page.getByRole("tab", { name: tab }).click();
      await drawn(page);
      await page.emulateMedia({ colorScheme: "dark" });
      await drawn(page);
      assert.deepEqual(await faintTexts(page, LEAST_CONTRAST), [], tab);
    }
  },
};
