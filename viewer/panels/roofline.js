// The roofline plot: what each op and shape reached, under the peaks that people give for a
// backend or, where they give none, under the best that the recording itself reached.

import { roofs, workByShape } from "../data/roofline.js";
import { bandwidth, compute, duration } from "../data/units.js";
import { drawRoofline } from "../draw/roofline.js";
import { colourOfName } from "../layout/colours.js";
import { element } from "./element.js";

const HINT = "Each dot is an op with a shape, as large as its share of the time. Point at one; a click highlights its events. Solid roofs are what was measured of the machine, dashed ones the best seen in this recording.";
const NOTHING = "No op here has a known amount of work and a measured time.";

/** @param {Scene} scene @param {Store} store @returns {Panel} */
export function rooflinePanel(scene, store) {
  const canvas = element("canvas", { class: "roofline", role: "img", "aria-label": "Computing rate over operations per byte" });
  const told = element("p", { class: "faint told", "aria-live": "polite" });
  const inputs = element("div", { class: "peaks" });
  /** @type {ReturnType<typeof drawRoofline>} */
  let places = [];
  const update = () => {
    const { recording } = scene;
    const { range, peaks } = store.state;
    const work = workByShape(recording, range, scene.searched);
    const shown = roofs(recording, work, peaks)
      .map((roof, backend) => ({ ...roof, backend, label: recording.backends[backend].label, given: roof.measured || peaks[backend] !== undefined }))
      .filter(({ backend }) => work.some((one) => one.backend === backend && one.flops > 0));
    if (!inputs.contains(document.activeElement)) inputs.replaceChildren(...shown.flatMap((roof) => peakInputs(store, roof)));
    const dots = allDots(recording, work, range);
    places = drawRoofline(canvas, dots, shown);
    told.textContent = dots.length === 0 ? NOTHING : HINT;
  };
  /** @param {MouseEvent} event */
  const near = ({ offsetX, offsetY }) => [...places].reverse().find(({ x, y, r }) => Math.hypot(x - offsetX, y - offsetY) < r + 3);
  canvas.addEventListener("pointermove", (event) => {
    const found = near(event);
    canvas.style.cursor = found ? "pointer" : "";
    if (places.length > 0) told.textContent = found ? found.dot.text : HINT;
  });
  canvas.addEventListener("click", (event) => {
    const found = near(event);
    if (found) store.update({ highlight: { path: found.dot.path, name: found.dot.text } });
  });
  // Its size is also told when it is hidden, and then it need not be drawn.
  new ResizeObserver(() => canvas.clientWidth > 0 && update()).observe(canvas);
  return { panel: element("div", {}, inputs, told, canvas), update, dependsOn: ["range", "peaks", "query"] };
}

/** @param {Recording} recording @param {ShapeWork[]} work @param {Span | null} range @returns {import("../draw/roofline.js").Dot[]} */
function allDots(recording, work, range) {
  const wall = Math.max(recording.recordedIn(range), 1);
  return work.filter(({ flops }) => flops > 0).map(({ op, shape, backend, total, moved, flops }) => ({
    intensity: flops / moved,
    compute: flops / total,
    share: total / wall,
    path: [{ level: "op", key: op }, { level: "backend", key: backend }, { level: "shape", key: shape }],
    colour: colourOfName(recording.opNames[op]),
    text: `${recording.opNames[op]} on ${recording.backends[backend].label} ${recording.shapes[shape]}: ${compute(flops / total)}, ${bandwidth(moved / total)}, ${duration(total)}`,
  }));
}

// Peaks of a backend: empty means the best that was seen, which stands there in grey.
/** @param {Store} store @param {{ backend: number, label: string, seen: Roof }} roof */
function peakInputs(store, { backend, label, seen }) {
  /** @param {keyof Roof} what @param {string} unit */
  const input = (what, unit) => {
    const field = element("input", {
      type: "number", min: 0, step: "any", inputmode: "decimal", "aria-label": `Peak ${unit} of ${label}`, placeholder: String(Number(seen[what].toPrecision(3))),
      value: String(store.state.peaks[backend]?.[what] ?? ""),
      oninput: () => store.update({ peaks: withPeak(store.state.peaks, backend, what, Number(field.value)) }),
    });
    return element("label", {}, field, ` ${unit}`);
  };
  const words = `${bandwidth(seen.bandwidth)}, ${compute(seen.compute)}`;
  return [element("span", {}, `Peaks of ${label}: `), input("bandwidth", "GB/s"), input("compute", "GFLOP/s"), element("span", { class: "faint" }, words)];
}

/** @param {Peaks} peaks @param {number} backend @param {keyof Roof} what @param {number} value @returns {Peaks} */
function withPeak(peaks, backend, what, value) {
  const { [what]: _before, ...others } = peaks[backend] ?? {};
  const peak = value > 0 ? { ...others, [what]: value } : others;
  const { [backend]: _peak, ...rest } = peaks;
  return Object.keys(peak).length > 0 ? { ...rest, [backend]: peak } : rest;
}
