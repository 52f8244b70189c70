// How quickly a page opens and moves, printed as JSON: `measure.mjs PAGE`.

import { closeBrowser, drawn, openPage } from "./browser.mjs";

const FRAMES = 120;

const { page, faults } = await openPage(process.argv[2]);
const firstDrawing = await page.evaluate(() => performance.getEntriesByName("ggprof-drawn")[0].startTime);
const heap = await page.evaluate(() => performance.memory.usedJSHeapSize);
const box = await page.locator(".stage").boundingBox();
await page.mouse.move(box.x + 800, box.y + 100);
await drawn(page);

// What the page's thread has worked so far, in seconds of its own time: busy machines lengthen
// the times on the clock, but not this one.
const session = await page.context().newCDPSession(page);
await session.send("Performance.enable", { timeDomain: "threadTicks" });
const worked = async () => (await session.send("Performance.getMetrics")).metrics.find(({ name }) => name === "TaskDuration").value;
const before = await worked();

// Time from one frame to the next while the wheel turns and keys are down; the work of a
// frame alone, because headless browsers draw no more than sixty a second.
const frames = await page.evaluate(async (count) => {
  const canvas = document.querySelector(".stage canvas.over");
  const box = canvas.getBoundingClientRect();
  const work = [];
  for (let at = 0; at < count; at += 1) {
    const deltaY = at % 60 < 30 ? -120 : 120;
    canvas.dispatchEvent(new WheelEvent("wheel", { deltaY, clientX: box.left + 800, clientY: box.top + 100, cancelable: true }));
    if (at % 3 === 0) document.dispatchEvent(new KeyboardEvent("keydown", { code: at % 2 === 0 ? "KeyA" : "KeyD", key: "a" }));
    const start = await new Promise(requestAnimationFrame);
    await new Promise((done) => setTimeout(done, 0));
    work.push(performance.now() - start);
  }
  return work.sort((a, b) => a - b);
}, FRAMES);

console.log(JSON.stringify({
  firstDrawingMs: Math.round(firstDrawing),
  medianFrameMs: Number(frames[Math.floor(frames.length / 2)].toFixed(1)),
  p95FrameMs: Number(frames[Math.floor(frames.length * 0.95)].toFixed(1)),
  longestFrameMs: Number(frames[frames.length - 1].toFixed(1)),
  meanFrameCpuMs: Number((((await worked()) - before) * 1000 / FRAMES).toFixed(1)),
  heapMB: Math.round(heap / 1e6),
  faults,
}));
await closeBrowser();
