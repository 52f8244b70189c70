// Opens pages in Chromium without a window, and says what went wrong in them.

import { createRequire } from "node:module";
import path from "node:path";

let browser = null;

async function launch() {
  const require = createRequire(path.join(process.env.GGPROF_PLAYWRIGHT, "package.json"));
  const { chromium } = require("playwright-core");
  return chromium.launch({
    executablePath: process.env.GGPROF_CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--enable-precise-memory-info"],
  });
}

// Every page has a context of its own, with nothing left from the one before.
export async function openPage(file, { overview, ...options } = {}) {
  browser ??= launch();
  const context = await (await browser).newContext({ viewport: { width: 1500, height: 950 }, ...options });
  const page = await context.newPage();
  const faults = [];
  page.on("pageerror", (error) => faults.push(String(error)));
  page.on("console", (message) => message.type() === "error" && faults.push(message.text()));
  page.on("dialog", (dialog) => {
    faults.push(`a dialog: ${dialog.message()}`);
    dialog.dismiss();
  });
  page.on("request", (request) => !request.url().startsWith("file:") && !request.url().startsWith("blob:") && faults.push(`a request: ${request.url()}`));
  await page.goto(`file://${path.resolve(file)}${options.hash ?? ""}`);
  await page.waitForSelector(".statistics", { state: "attached" });
  // Most checks are about the tables.
  if (!overview) await page.getByRole("tab", { name: "Statistics" }).click();
  return { page, faults, close: () => context.close() };
}

// A page as it is, once this is on it.
export async function openPlain(file, selector) {
  browser ??= launch();
  const page = await (await browser).newPage({ viewport: { width: 1500, height: 950 } });
  const faults = [];
  page.on("pageerror", (error) => faults.push(String(error)));
  page.on("console", (message) => message.type() === "error" && faults.push(message.text()));
  await page.goto(`file://${path.resolve(file)}`);
  await page.waitForSelector(selector, { state: "attached" });
  return { page, faults };
}

// A page with two recordings, each in a frame.
export async function openPair(file) {
  const { page, faults } = await openPlain(file, "iframe");
  const frames = page.frames().slice(1);
  await Promise.all(frames.map((frame) => frame.waitForSelector(".statistics", { state: "attached" })));
  return { page, frames, faults };
}

export async function closeBrowser() {
  await (await browser)?.close();
  browser = null;
}

// Two frames later all that was asked for is drawn.
export function drawn(page) {
  return page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
}

// The state as the address has it, after the pause in which it is collected: by the page's own
// clock, because on a busy machine ours says little about it.
export async function hash(page) {
  await drawn(page);
  const text = await page.evaluate(() => new Promise((done) => setTimeout(() => done(location.hash.slice(1)), 350)));
  return new URLSearchParams(text);
}

export async function viewOf(page) {
  const [start, end] = (await hash(page)).get("view").split("-").map(Number);
  return { start, end };
}

export async function selectedOf(page) {
  return Number((await hash(page)).get("selected") ?? -1);
}
