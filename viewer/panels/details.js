// Everything about the selected event, and where it stands among calls of the same shape.

import { bytes, count, duration, magnitude, percent, rate } from "../data/units.js";
import { element } from "./element.js";

const BARS = 24;

const MEASURED = {
  unknown: "the recording does not say",
  device: "the device's clock",
  host: "the host's clock around the work",
  host_call: "the host's clock around the call that starts the work",
  serialized: "the host's clock, one op at a time",
  modelled: "worked out from other measurements",
};

export function details(panel, scene, store) {
  store.on(["selected"], ({ selected }) => {
    panel.replaceChildren(...(selected < 0 ? hint() : describe(scene, selected)));
  });
}

function hint() {
  return [element("p", { class: "faint" }, "Click an event to see what it is; shift-drag to select a range; ? shows the keys.")];
}

function describe(scene, event) {
  const { recording } = scene;
  const { op, sub, extra, output, sources, flops, moved } = recording.signature(event);
  const names = recording.nodes.sources[recording.columns.node[event]];
  const ns = recording.duration(event);
  const copy = recording.isCopy(event);
  const layer = recording.layer(event);
  const { columns } = recording;
  const lines = [
    ["tensor", recording.tensor(event)],
    ["fused", copy ? "" : extra ?? ""],
    ["backend", backendText(recording, event)],
    ["layer", layer === null ? "" : `${layer} · ${recording.modules[columns.module[event]]}`],
    ["phase", recording.phase(event)?.label ?? ""],
    ["graph run", columns.run[event] === 0 ? "" : String(columns.run[event] - 1)],
    ["start", duration(recording.start(event)) || "0"],
    ["duration", duration(ns)],
    ["output", output],
    ...sources.map((source, at) => [`source ${at}`, [source, names[at]].filter(Boolean).join("  ")]),
    ["bytes", copy ? bytes(columns.bytes[event]) : bytes(moved)],
    ["operations", copy || !flops ? "" : `${magnitude(flops)}FLOP`],
    ["GB/s", rate(copy ? columns.bytes[event] : moved, ns)],
    ["GFLOP/s", copy || !flops ? "" : rate(flops, ns)],
    ["threads", threadText(columns, event)],
    ["measured by", MEASURED[recording.measured[columns.measured[event]]]],
    ...scene.linksOf(event).map(([from, to]) => (from === event ? ["waited for by", recording.label(to)] : ["waits for", `copy of ${recording.tensor(from) || recording.label(from)}`])),
  ];
  return [
    element("h2", {}, element("i", { class: "swatch" }), sub ? `${op} ${sub}` : op),
    element("dl", {}, ...lines.filter(([, text]) => text !== "").flatMap(([name, text]) => [element("dt", {}, name), element("dd", {}, text)])),
    ...histogram(recording, event),
  ].map((node) => tint(node, scene.colour(event)));
}

function tint(node, colour) {
  const swatch = node.querySelector(".swatch");
  if (swatch) swatch.style.background = colour;
  return node;
}

function backendText(recording, event) {
  const { label, name } = recording.backend(event);
  const from = recording.columns.source_backend[event];
  const text = label === name ? label : `${label} (${name})`;
  return from === 0 ? text : `${recording.backends[from - 1].label} → ${text}`;
}

function threadText(columns, event) {
  const threads = columns.threads[event];
  if (threads === 0) return "";
  const all = columns.busy_sum[event] + columns.wait_sum[event];
  const waiting = all > 0 ? percent(columns.wait_sum[event] / all) : "0 %";
  return `${threads}, busiest ${duration(columns.busy_max[event])}, ${waiting} of their time waiting`;
}

// Calls of the same op, shape and backend by duration; the selected one's bar is marked.
function histogram(recording, event) {
  const alike = durationsAlike(recording, event);
  if (alike.length < 2) return [];
  const [low, high] = [alike[0], alike[alike.length - 1]];
  const bar = (ns) => (high > low ? Math.min(Math.floor(((ns - low) / (high - low)) * BARS), BARS - 1) : 0);
  const counts = new Array(BARS).fill(0);
  alike.forEach((ns) => (counts[bar(ns)] += 1));
  const most = Math.max(...counts);
  const own = bar(recording.duration(event));
  const bars = counts.map((number, at) => {
    const one = element("i", { class: at === own ? "own" : "", title: `${count(number)} calls` });
    one.style.height = `${number === 0 ? 0 : 4 + (number / most) * 44}px`;
    return one;
  });
  const faster = alike.filter((ns) => ns < recording.duration(event)).length / alike.length;
  return [
    element("h3", {}, `Among ${count(alike.length)} calls of this shape`),
    element("div", { class: "histogram", role: "img", "aria-label": `Durations from ${duration(low)} to ${duration(high)}` }, ...bars),
    element("div", { class: "scale" }, element("span", {}, duration(low)), element("span", {}, `slower than ${percent(faster)}`), element("span", {}, duration(high))),
  ];
}

function durationsAlike(recording, event) {
  const [op, shape, backend] = [recording.op(event), recording.shape(event), recording.columns.backend[event]];
  const found = [];
  for (let other = 0; other < recording.count; other += 1) {
    if (recording.shape(other) === shape && recording.op(other) === op && recording.columns.backend[other] === backend) found.push(recording.duration(other));
  }
  return found.sort((a, b) => a - b);
}
