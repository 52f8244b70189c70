// The heat of a model's experts: a line for each layer, a field for each expert, as dark as it
// was used.

import { prepare, theme } from "./canvas.js";

const MARGIN = { left: 64, right: 12, top: 18, bottom: 6 };
const TALLEST = 18;

// How tall the map of so many layers is.
/** @param {number} layers */
export function heightOfExperts(layers) {
  return MARGIN.top + MARGIN.bottom + layers * TALLEST;
}

// Draws and returns which expert of which layer is at a place.
/** @param {HTMLCanvasElement} canvas @param {ExpertLayer[]} layers */
export function drawExperts(canvas, layers) {
  const { context, width } = prepare(canvas);
  const colours = theme();
  const experts = Math.max(...layers.map(({ uses }) => uses.length), 1);
  const wide = (width - MARGIN.left - MARGIN.right) / experts;
  context.fillStyle = colours.faint;
  context.fillText("expert", 8, MARGIN.top / 2);
  for (let expert = 0; expert < experts; expert += labelEvery(wide)) context.fillText(String(expert), MARGIN.left + expert * wide, MARGIN.top / 2);
  layers.forEach(({ layer, uses }, line) => {
    const top = MARGIN.top + line * TALLEST;
    context.globalAlpha = 1;
    context.fillStyle = colours.faint;
    context.fillText(layer === null ? "no layer" : `layer ${layer}`, 8, top + TALLEST / 2);
    const most = Math.max(...uses, 1);
    uses.forEach((count, expert) => {
      context.globalAlpha = count === 0 ? 0.06 : 0.15 + 0.85 * (count / most);
      context.fillStyle = count === 0 ? colours.text : colours.accent;
      context.fillRect(MARGIN.left + expert * wide, top + 1, Math.max(wide - (wide > 4 ? 1 : 0), 0.5), TALLEST - 2);
    });
  });
  context.globalAlpha = 1;
  /** @param {number} x @param {number} y */
  return (x, y) => {
    const [line, expert] = [Math.floor((y - MARGIN.top) / TALLEST), Math.floor((x - MARGIN.left) / wide)];
    const layer = layers[line];
    return layer && expert >= 0 && expert < layer.uses.length ? { layer, expert } : null;
  };
}

// Numbers stand so far apart that they do not touch.
/** @param {number} wide */
function labelEvery(wide) {
  const steps = [1, 2, 4, 8, 16, 32, 64, 128, 256];
  return steps.find((step) => step * wide >= 26) ?? 512;
}
