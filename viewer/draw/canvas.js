// Canvases in device pixels, and the page's colours for them.

export const GUTTER = 132;
export const RULER = 24;
const FONT = "11px system-ui, sans-serif";

// Makes the canvas as large as its place on the page; drawing is in CSS pixels.
/** @param {HTMLCanvasElement} canvas */
export function prepare(canvas) {
  const ratio = window.devicePixelRatio || 1;
  const { clientWidth: width, clientHeight: height } = canvas;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  const context = canvas.getContext("2d");
  if (!context) throw new Error("this browser has no canvas to draw on");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  context.font = FONT;
  context.textBaseline = "middle";
  return { context, width, height };
}

// The colours that the style sheet chose for light or dark.
export function theme() {
  const style = getComputedStyle(document.documentElement);
  /** @param {string} name */
  const colour = (name) => style.getPropertyValue(`--${name}`).trim();
  return {
    back: colour("back"), panel: colour("panel"), text: colour("text"), faint: colour("faint"),
    line: colour("line"), accent: colour("accent"), area: colour("area"), select: colour("select"),
  };
}
