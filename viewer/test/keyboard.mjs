// Without a mouse, and for screen readers.

import assert from "node:assert/strict";
import { drawn, hash, selectedOf } from "./browser.mjs";

// The name of what has the focus; empty when it has left the page.
const focused = (page) => page.evaluate(() => {
  const { activeElement: element, body } = document;
  return element === null || element === body ? "" : element.getAttribute("aria-label") ?? element.textContent;
});

export const keyboard = {
  "? shows the keys, Esc closes them": async (page) => {
    await page.keyboard.press("?");
    const dialog = page.getByRole("dialog");
    assert.ok(await dialog.isVisible());
    for (const key of ["W / S", "A / D", "F, double click", ". / ,", "/", "Esc", "?"]) assert.ok((await dialog.innerText()).includes(key), key);
    await page.keyboard.press("Escape");
    assert.ok(!(await dialog.isVisible()));
    await page.getByRole("button", { name: "Keys" }).click();
    assert.ok(await dialog.isVisible());
    await page.getByRole("button", { name: "Close", exact: true }).click();
    assert.ok(!(await dialog.isVisible()));
  },
  "the tab key reaches everything, and one sees where it is": async (page) => {
    const reached = [];
    await page.locator("h1").click();
    for (let times = 0; times < 60; times += 1) {
      await page.keyboard.press("Tab");
      const name = await focused(page);
      if (name === "") break;
      reached.push(name);
      assert.notEqual(await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle), "none", name);
    }
    for (const name of ["Show the whole recording", "Search events", "Colour by", "Keys", "Statistics", "Group by", "Copy the table as markdown", "Sort by Total", "Open or close MUL_MAT"]) assert.ok(reached.includes(name), `${name}: ${reached.join(", ")}`);
    assert.ok(reached.some((name) => name.startsWith("Timeline")), reached.join(", "));
  },
  "tables and tabs work with keys": async (page) => {
    await page.getByRole("tab", { name: "Statistics" }).focus();
    await page.keyboard.press("ArrowRight");
    assert.ok(await page.locator(".gaps").isVisible());
    await page.keyboard.press("ArrowRight");
    assert.ok(await page.locator(".roofline").isVisible());
    await page.keyboard.press("ArrowRight");
    assert.ok(await page.locator(".depth").isVisible());
    await page.keyboard.press("ArrowRight");
    assert.ok(await page.locator(".overview").isVisible());
    await page.keyboard.press("ArrowRight");
    assert.ok(await page.locator(".statistics").isVisible());
    await page.locator(".statistics tbody tr").first().focus();
    await page.keyboard.press("Enter");
    await drawn(page);
    assert.equal(await page.locator("tr.marked").count(), 1);
    await page.getByRole("tab", { name: "Statistics" }).focus();
    await page.keyboard.press("ArrowRight");
    const before = (await hash(page)).get("view");
    await page.locator(".gaps tbody tr").first().focus();
    await page.keyboard.press("Enter");
    assert.notEqual((await hash(page)).get("view"), before);
  },
  "letters in the search box are text": async (page) => {
    const before = (await hash(page)).get("view");
    await page.keyboard.press("/");
    await page.keyboard.type("wasdf.,?");
    assert.equal(await page.getByLabel("Search events").inputValue(), "wasdf.,?");
    assert.equal((await hash(page)).get("view"), before);
    assert.equal(await selectedOf(page), -1);
  },
  "everything that can be used has a name": async (page) => {
    const nameless = await page.evaluate(() => [...document.querySelectorAll("button, input, select, canvas:not([aria-hidden]), [role=tabpanel], dialog, aside")]
      .filter((one) => !(one.getAttribute("aria-label") || one.textContent.trim()))
      .map((one) => one.outerHTML));
    assert.deepEqual(nameless, []);
    assert.equal(await page.locator("html").getAttribute("lang"), "en");
    assert.equal(await page.locator(".details").getAttribute("aria-live"), "polite");
  },
};
