// Which experts of the model were used, and how evenly: a map for each phase and each way in which
// they were seen.

import { count, percent } from "../data/units.js";
import { drawExperts, heightOfExperts } from "../draw/experts.js";
import { element } from "./element.js";

const HINT = "Each line is a layer, each field an expert: the stronger its colour, the more it was used, within its layer. Point at one.";

/** @param {ExpertLayer[]} layers @returns {Panel} */
export function expertsPanel(layers) {
  const told = element("p", { class: "faint told", "aria-live": "polite" }, HINT);
  const maps = grouped(layers).map(({ title, layers: ofMap }) => map(title, ofMap, told));
  return { panel: element("div", {}, told, ...maps.map(({ part }) => part)), update: () => maps.forEach(({ draw }) => draw()), dependsOn: [] };
}

// By phase and by how they were seen, in the order of the recording.
/** @param {ExpertLayer[]} layers */
function grouped(layers) {
  /** @type {Map<string, ExpertLayer[]>} */
  const maps = new Map();
  for (const layer of layers) {
    const title = `${layer.phase ?? "graphs"}, ${layer.byCopies ? "by copies to a device" : "by the choices that the CPU read"}`;
    const list = maps.get(title) ?? [];
    list.push(layer);
    maps.set(title, list);
  }
  return [...maps].map(([title, ofMap]) => ({ title, layers: ofMap }));
}

/** @param {string} title @param {ExpertLayer[]} layers @param {HTMLElement} told */
function map(title, layers, told) {
  const canvas = element("canvas", { class: "experts", role: "img", "aria-label": `Uses of experts: ${title}` });
  canvas.style.height = `${heightOfExperts(layers.length)}px`;
  /** @type {ReturnType<typeof drawExperts>} */
  let at = () => null;
  const draw = () => {
    if (canvas.clientWidth > 0) at = drawExperts(canvas, layers);
  };
  canvas.addEventListener("pointermove", ({ offsetX, offsetY }) => {
    const found = at(offsetX, offsetY);
    told.textContent = found ? describe(found.layer, found.expert) : HINT;
  });
  new ResizeObserver(draw).observe(canvas);
  return { part: element("div", {}, element("h3", {}, title), canvas), draw };
}

/** @param {ExpertLayer} layer @param {number} expert */
function describe(layer, expert) {
  const all = layer.uses.reduce((sum, uses) => sum + uses, 0);
  const used = layer.uses.filter((uses) => uses > 0).length;
  const where = layer.layer === null ? "no layer" : `layer ${layer.layer}`;
  const of = layer.byCopies ? `${count(layer.runs)} graph runs` : `${count(layer.read)} of ${count(layer.tokens)} tokens`;
  const even = layer.evenness === null ? "" : `, evenness ${percent(layer.evenness)}`;
  return `Expert ${expert} of ${where}: used ${count(layer.uses[expert])} times, ${percent(layer.uses[expert] / Math.max(all, 1))} of all; ${used} of ${layer.uses.length} experts used in ${of}${even}`;
}
