// How the time of a token grows with its context: tokens and their attention, run by run.

import { duration, count } from "../data/units.js";
import { drawDepth, usualMost } from "../draw/depth.js";
import { colourOfName } from "../layout/colours.js";
import { element } from "./element.js";

const NOTHING = "No prompt and no generation with attention is in this recording.";
const WHAT = { token: "a token", attention: "its attention" };

/** @param {Scene} scene @param {Store} store @param {Actions} actions @returns {Panel} */
export function depthPanel(scene, store, actions) {
  const { depth } = scene.recording;
  let chosen = Math.max(depth.length - 1, 0);
  const canvas = element("canvas", { class: "depth", role: "img", "aria-label": "Time of a token over the length of its context" });
  const told = element("p", { class: "faint told", "aria-live": "polite" });
  const choice = element("select", { "aria-label": "Phase", onchange: () => {
    chosen = Number(choice.value);
    update();
  } }, ...depth.map(({ label }, at) => element("option", { value: String(at) }, label)));
  choice.value = String(chosen);
  /** @type {ReturnType<typeof drawDepth>} */
  let places = [];
  let hint = NOTHING;
  const update = () => {
    const one = depth[chosen];
    const dots = one ? allDots(one) : [];
    hint = one ? sentence(one, dots) : NOTHING;
    told.textContent = hint;
    places = drawDepth(canvas, dots, one ? lines(one) : [], one ? one.steps : []);
  };
  /** @param {MouseEvent} event */
  const near = ({ offsetX, offsetY }) => places.find(({ x, y }) => Math.hypot(x - offsetX, y - offsetY) < 5);
  canvas.addEventListener("pointermove", (event) => {
    const found = near(event);
    canvas.style.cursor = found ? "pointer" : "";
    told.textContent = found ? found.dot.text : hint;
  });
  canvas.addEventListener("click", (event) => {
    const found = near(event);
    if (found) actions.show(found.dot.run.start, found.dot.run.end);
  });
  // Its size is also told when it is hidden, and then it need not be drawn.
  new ResizeObserver(() => canvas.clientWidth > 0 && update()).observe(canvas);
  choice.hidden = depth.length < 2;
  const controls = element("div", { class: "bar" }, choice, element("div", { class: "key" }, key("token"), key("attention")));
  controls.hidden = depth.length === 0;
  return { panel: element("div", {}, controls, told, canvas), update, dependsOn: [] };
}

/** @param {"token" | "attention"} what */
function key(what) {
  const swatch = element("i", { class: "swatch" });
  swatch.style.background = colour(what);
  return element("span", {}, swatch, WHAT[what]);
}

/** @param {Depth} depth @param {import("../draw/depth.js").DepthDot[]} dots */
function sentence({ label, exact, slope }, dots) {
  const costs = /** @type {const} */ (["token", "attention"]).flatMap((what) => {
    const ns = slope[what];
    return ns === null ? [] : [`${duration(ns)} more for ${WHAT[what]}`];
  });
  const cost = costs.length > 0 ? `1,000 tokens more of context: ${costs.join(", ")}.` : "Too few lengths of context for a slope.";
  const source = exact ? "" : " The length is that of the cache, because positions are not known.";
  const times = dots.map(({ ns }) => ns);
  const most = usualMost(times);
  const longer = times.filter((ns) => ns > most).length;
  const cut = longer > 0 ? ` ${longer === 1 ? "One that took much longer is" : `${count(longer)} that took much longer are`} at the top.` : "";
  return `Each run of the ${label}, and its attention. ${cost}${source}${cut} Click a dot to see the run.`;
}

/** @param {Depth} depth @returns {import("../draw/depth.js").DepthDot[]} */
function allDots({ points }) {
  return points.depth.flatMap((depth, at) => {
    const run = { start: points.start[at], end: points.start[at] + points.token[at] * points.parts[at] };
    /** @param {"token" | "attention"} what */
    const dot = (what) => {
      const ns = points[what][at];
      const text = `${duration(ns)} for ${WHAT[what]} after ${count(depth)} tokens`;
      return ns === null ? [] : [{ depth, ns, run, colour: colour(what), text }];
    };
    return [...dot("token"), ...dot("attention")];
  });
}

// Through the middle of the dots, as steep as the slope.
/** @param {Depth} depth @returns {import("../draw/depth.js").DepthLine[]} */
function lines({ points, slope, steps }) {
  // A line through a step would be wrong on both sides of it.
  if (steps.length > 0) return [];
  return /** @type {const} */ (["token", "attention"]).flatMap((what) => {
    const rise = slope[what];
    const known = points.depth.flatMap((depth, at) => {
      const ns = points[what][at];
      return ns === null || rise === null ? [] : [{ depth, base: ns - (rise / 1000) * depth }];
    });
    if (rise === null || known.length === 0) return [];
    const base = known.map((one) => one.base).sort((a, b) => a - b)[Math.floor(known.length / 2)];
    /** @param {number} depth @returns {[number, number]} */
    const place = (depth) => [depth, Math.max(base + (rise / 1000) * depth, 0)];
    return [{ colour: colour(what), from: place(known[0].depth), to: place(known[known.length - 1].depth) }];
  });
}

/** @param {"token" | "attention"} what */
function colour(what) {
  return colourOfName(what === "token" ? "MUL_MAT" : "FLASH_ATTN_EXT");
}
