// The grid of a plot with two axes: lines and words at their ticks.

/** @typedef {{ place: (value: number) => number, ticks: number[], name: string, word: (value: number) => string }} DrawnAxis */
/** @typedef {{ left: number, right: number, top: number, bottom: number }} Margin */

/** @param {CanvasRenderingContext2D} context @param {DrawnAxis} x @param {DrawnAxis} y @param {Size} size @param {Margin} margin @param {Theme} colours */
export function drawAxes(context, x, y, { width, height }, margin, colours) {
  context.strokeStyle = colours.line;
  context.fillStyle = colours.faint;
  context.textAlign = "center";
  for (const value of x.ticks) {
    context.strokeRect(x.place(value), margin.top, 0, height - margin.top - margin.bottom);
    context.fillText(x.word(value), x.place(value), height - margin.bottom + 12);
  }
  context.fillText(x.name, (margin.left + width - margin.right) / 2, height - 10);
  context.textAlign = "right";
  for (const value of y.ticks) {
    context.strokeRect(margin.left, y.place(value), width - margin.left - margin.right, 0);
    context.fillText(y.word(value), margin.left - 6, y.place(value));
  }
  context.textAlign = "left";
  context.fillText(y.name, 4, 8);
}
