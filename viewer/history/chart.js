// Draws speeds over commits or over time: a dot for each recording, the median and the range of each
// commit, and a ring where a change is more than noise.

import { grouped, tokenRate } from "../data/units.js";
import { drawAxes } from "../draw/axes.js";
import { prepare, theme } from "../draw/canvas.js";
import { shortName } from "./series.js";

const MARGIN = { left: 64, right: 20, top: 22, bottom: 38 };
const APART = 76;
const DAY = 24 * 3600 * 1000;

/** @typedef {import("./series.js").HistoryPoint} HistoryPoint */
/** @typedef {{ x: number, y: number, text: string }} Place */
/** @typedef {{ colour: string, name: string, points: HistoryPoint[] }} HistoryLine */

// Draws the lines, and returns where each median is, with a sentence about it.
/** @param {HTMLCanvasElement} canvas @param {HistoryLine[]} lines @param {string[]} commits @param {boolean} byTime @returns {Place[]} */
export function drawHistory(canvas, lines, commits, byTime) {
  const { context, width, height } = prepare(canvas);
  const colours = theme();
  const points = lines.flatMap((line) => line.points);
  const x = byTime ? timeAxis(points, width) : commitAxis(points, commits, width);
  const y = speedAxis(points, height);
  drawAxes(context, { ...x, name: byTime ? "day of recording" : "" }, { ...y, name: "t/s" }, { width, height }, MARGIN, colours);
  return lines.flatMap((line) => drawLine(context, x, y, line, colours));
}

/** @typedef {{ place: (value: number) => number, ticks: number[], word: (value: number) => string, of: (point: HistoryPoint) => number, ofRun: (point: HistoryPoint, at: number) => number }} PointAxis */

/** @param {CanvasRenderingContext2D} context @param {PointAxis} x @param {{ place: (value: number) => number }} y @param {HistoryLine} line @param {Theme} colours @returns {Place[]} */
function drawLine(context, x, y, { colour, name, points }, colours) {
  context.strokeStyle = colour;
  context.fillStyle = colour;
  context.beginPath();
  for (const point of points) context.lineTo(x.place(x.of(point)), y.place(point.median));
  context.stroke();
  return points.map((point) => {
    const place = { x: x.place(x.of(point)), y: y.place(point.median), text: sentence(name, point) };
    context.globalAlpha = 0.35;
    point.runs.forEach((run, at) => dot(context, x.place(x.ofRun(point, at)), y.place(run.speed), 2));
    context.globalAlpha = 1;
    context.strokeRect(place.x, y.place(point.highest), 0, y.place(point.lowest) - y.place(point.highest));
    dot(context, place.x, place.y, 3.5);
    if (point.change?.certain) drawChange(context, place, point.change.share, colours);
    context.strokeStyle = colour;
    context.fillStyle = colour;
    return place;
  });
}

/** @param {CanvasRenderingContext2D} context @param {number} x @param {number} y @param {number} radius */
function dot(context, x, y, radius) {
  context.beginPath();
  context.arc(x, y, radius, 0, 2 * Math.PI);
  context.fill();
}

/** @param {CanvasRenderingContext2D} context @param {Place} place @param {number} share @param {Theme} colours */
function drawChange(context, place, share, colours) {
  context.strokeStyle = colours.select;
  context.beginPath();
  context.arc(place.x, place.y, 7, 0, 2 * Math.PI);
  context.stroke();
  context.fillStyle = colours.text;
  context.textAlign = "center";
  context.fillText(signed(share), place.x, place.y - 15);
}

/** @param {number} share */
function signed(share) {
  return `${share > 0 ? "+" : ""}${(share * 100).toFixed(1)}%`;
}

/** @param {string} name @param {HistoryPoint} point */
function sentence(name, { commit, median, lowest, highest, change, runs }) {
  const range = runs.length > 1 ? ` (${grouped(lowest)} to ${grouped(highest)}, ${runs.length} recordings)` : ` (${runs[0].file})`;
  const since = change ? `, ${signed(change.share)} against the recordings before${change.certain ? "" : ", which may be noise"}` : "";
  const [first] = runs.flatMap(({ at }) => (at === null ? [] : [day(at)]));
  return `${[name, commit].filter(Boolean).join(", ")}: ${tokenRate(median)}${range}${since}${first ? `; recorded ${first}` : ""}`;
}

/** @param {HistoryPoint[]} points @param {string[]} commits @param {number} width @returns {PointAxis} */
function commitAxis(points, commits, width) {
  const used = commits.filter((commit) => points.some((point) => point.commit === commit));
  const step = (width - MARGIN.left - MARGIN.right) / Math.max(used.length, 1);
  const places = new Map(used.map((commit, at) => [commit, at]));
  /** @param {HistoryPoint} point */
  const of = ({ commit }) => places.get(commit ?? "") ?? 0;
  const every = Math.max(Math.ceil(APART / step), 1);
  return {
    of,
    // Side by side, in the order of time.
    ofRun: (point, at) => of(point) + ((at + 0.5) / point.runs.length - 0.5) * 0.4,
    place: (value) => MARGIN.left + (value + 0.5) * step,
    ticks: used.map((_, at) => at).filter((at) => at % every === 0),
    word: (value) => shortName(used[value]),
  };
}

/** @param {HistoryPoint[]} points @param {number} width @returns {PointAxis} */
function timeAxis(points, width) {
  const times = points.flatMap(({ runs }) => runs.flatMap(({ at }) => (at === null ? [] : [at])));
  const [low, high] = [Math.min(...times, Infinity), Math.max(...times, -Infinity)];
  const [start, end] = times.length === 0 ? [0, DAY] : low === high ? [low - DAY / 2, high + DAY / 2] : [low, high];
  const wanted = Math.max(Math.floor((width - MARGIN.left - MARGIN.right) / APART), 2);
  /** @param {HistoryPoint} point */
  const of = ({ runs }) => {
    const known = runs.flatMap(({ at }) => (at === null ? [] : [at]));
    return known.length === 0 ? start : known.reduce((sum, at) => sum + at, 0) / known.length;
  };
  return {
    of,
    ofRun: (point, at) => point.runs[at].at ?? start,
    place: (value) => MARGIN.left + 8 + ((value - start) / (end - start)) * (width - MARGIN.left - MARGIN.right - 16),
    ticks: Array.from({ length: wanted }, (_, at) => start + ((end - start) * at) / (wanted - 1)),
    word: day,
  };
}

/** @param {number} milliseconds */
function day(milliseconds) {
  const time = new Date(milliseconds);
  return [time.getFullYear(), time.getMonth() + 1, time.getDate()].map((part) => String(part).padStart(2, "0")).join("-");
}

// Round speeds around all that were seen. It need not begin at zero: a change of a few percent is what
// one looks for.
/** @param {HistoryPoint[]} points @param {number} height */
function speedAxis(points, height) {
  const [least, most] = [Math.min(...points.map(({ lowest }) => lowest)), Math.max(...points.map(({ highest }) => highest))];
  const range = Math.max(most - least, most * 0.1, 1e-9);
  const size = 10 ** Math.floor(Math.log10(range));
  const step = [0.2, 0.5, 1, 2].map((factor) => factor * size).find((one) => range / one <= 5) ?? size;
  const low = Math.max(Math.floor((least - range * 0.1) / step), 0) * step;
  const high = Math.ceil((most + range * 0.2) / step) * step;
  const ticks = [];
  for (let at = 0; low + at * step <= high * 1.0001 && at < 50; at += 1) ticks.push(low + at * step);
  /** @param {number} value */
  const place = (value) => height - MARGIN.bottom - ((value - low) / (high - low)) * (height - MARGIN.bottom - MARGIN.top);
  return { place, ticks, word: grouped };
}
