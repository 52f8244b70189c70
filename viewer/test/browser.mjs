// Opens a page in Chromium without a window, and says what went wrong in it.

import { createRequire } from "node:module";
import path from "node:path";

export async function openPage(file, options = {}) {
  const require = createRequire(path.join(process.env.GGPROF_PLAYWRIGHT, "package.json"));
  const { chromium } = require("playwright-core");
  const browser = await chromium.launch({
    executablePath: process.env.GGPROF_CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--enable-precise-memory-info"],
  });
  const page = await browser.newPage({ viewport: { width: 1500, height: 950 }, ...options });
  const faults = [];
  page.on("pageerror", (error) => faults.push(String(error)));
  page.on("console", (message) => message.type() === "error" && faults.push(message.text()));
  page.on("dialog", (dialog) => {
    faults.push(`a dialog: ${dialog.message()}`);
    dialog.dismiss();
  });
  page.on("request", (request) => !request.url().startsWith("file:") && !request.url().startsWith("blob:") && faults.push(`a request: ${request.url()}`));
  await page.goto(`file://${path.resolve(file)}${options.hash ?? ""}`);
  await page.waitForSelector(".statistics tbody tr, .loss");
  return { browser, page, faults };
}

// Two frames later all that was asked for is drawn.
export function drawn(page) {
  return page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
}

export function stage(page) {
  return page.locator(".stage").boundingBox();
}

// The state as the address has it, after the pause in which it is collected.
export async function hash(page) {
  await page.waitForTimeout(400);
  return new URLSearchParams(await page.evaluate(() => location.hash.slice(1)));
}

export async function viewOf(page) {
  const [start, end] = (await hash(page)).get("view").split("-").map(Number);
  return { start, end };
}
