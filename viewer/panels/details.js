// Everything about the selected event, and where it stands among calls of the same shape.

import { bandwidth, bytes, compute, duration, operations, percent } from "../data/units.js";
import { colourOfName, textOn } from "../layout/colours.js";
import { element } from "./element.js";
import { histogram } from "./histogram.js";
import { kernelTable } from "./kernels.js";

/** @type {{ [how: string]: string }} */
const MEASURED = {
  unknown: "the recording does not say",
  device: "the device's clock",
  host: "the host's clock around the work",
  host_call: "the host's clock around the call that only starts the work: no rate can be told",
  serialized: "the host's clock, one op at a time",
  modelled: "worked out from other measurements",
};

/** @param {HTMLElement} panel @param {Scene} scene @param {Store} store */
export function details(panel, scene, store) {
  store.on(["selected", "work"], ({ selected, work }) => {
    panel.replaceChildren(...(selected < 0 ? hint() : describe(scene, store, selected, work)));
  });
}

function hint() {
  return [element("p", { class: "faint" }, "Click an event to see what it is; shift-drag to select a range; ? shows the keys.")];
}

/** @param {Scene} scene @param {Store} store @param {number} event @param {number} work */
function describe(scene, store, event, work) {
  const { recording } = scene;
  const swatch = element("i", { class: "swatch" });
  swatch.style.background = scene.colour(event);
  return [
    element("h2", {}, swatch, recording.opName(event)),
    ...fusion(recording.parts(event)),
    list([...place(recording, event), ...tensors(recording, event), ...amounts(recording, event), ...links(scene, event)]),
    ...kernelTable(recording, event, work, (chosen) => store.update({ work: chosen })),
    ...histogram(recording, event),
  ];
}

// Lines without a text are left out.
/** @param {string[][]} lines */
function list(lines) {
  return element("dl", {}, ...lines.filter(([, text]) => text !== "").flatMap(([name, text]) => [element("dt", {}, name), element("dd", {}, text)]));
}

// The parts of a fused op. They ran as one, and so have one time.
/** @param {string[]} parts */
function fusion(parts) {
  if (parts.length === 0) return [];
  const chips = parts.map((part) => {
    const chip = element("span", { class: "part" }, part);
    chip.style.background = colourOfName(part);
    chip.style.color = textOn(colourOfName(part));
    return chip;
  });
  return [element("p", { class: "fusion" }, ...chips, element("span", { class: "faint" }, "fused: one measurement for all"))];
}

/** @param {Recording} recording @param {number} event */
function place(recording, event) {
  const { columns } = recording;
  const layer = recording.layer(event);
  return [
    ["tensor", recording.tensor(event)],
    ["backend", backendText(recording, event)],
    ["layer", layer === null ? "" : `${layer} · ${recording.modules[columns.module[event]]}`],
    ["phase", recording.phase(event)?.label ?? ""],
    ["graph run", columns.run[event] === 0 ? "" : String(recording.runs.number[columns.run[event] - 1])],
    ["start", duration(recording.start(event))],
    ["duration", duration(recording.duration(event))],
    ["of it counted", columns.uncharged[event] === 0 ? "" : `${duration(recording.charged(event))}, without gaps and what overlaps`],
  ];
}

/** @param {Recording} recording @param {number} event */
function tensors(recording, event) {
  const { output, sources } = recording.signature(event);
  const names = recording.nodes.sources[recording.columns.node[event]];
  return [["output", output], ...sources.map((source, at) => [`source ${at}`, [source, names[at]].filter(Boolean).join("  ")])];
}

/** @param {Recording} recording @param {number} event */
function amounts(recording, event) {
  const { columns } = recording;
  const [moved, flops, ns] = [recording.moved(event), recording.flops(event), recording.charged(event)];
  /** @param {number} amount */
  const perTime = (amount) => (amount > 0 && ns > 0 && recording.hasRate(event) ? amount / ns : null);
  return [
    ["bytes", Number.isNaN(moved) ? "" : bytes(moved)],
    ["operations", flops > 0 ? operations(flops) : ""],
    ["memory", bandwidth(perTime(moved))],
    ["compute", compute(perTime(flops))],
    ["threads", threadText(columns, event)],
    ["measured by", MEASURED[recording.measured[columns.measured[event]]]],
  ];
}

/** @param {Scene} scene @param {number} event */
function links(scene, event) {
  const { recording } = scene;
  return scene.linksOf(event).map(([copy, op]) =>
    (copy === event ? ["waited for by", recording.fullName(op)] : ["waits for", `copy of ${recording.tensor(copy) || recording.label(copy)}`]));
}

/** @param {Recording} recording @param {number} event */
function backendText(recording, event) {
  const { label, name } = recording.backend(event);
  const from = recording.columns.source_backend[event];
  const text = label === name ? label : `${label} (${name})`;
  return from === 0 ? text : `${recording.backends[from - 1].label} → ${text}`;
}

/** @param {Columns} columns @param {number} event */
function threadText(columns, event) {
  const threads = columns.threads[event];
  if (threads === 0) return "";
  const all = columns.busy_sum[event] + columns.wait_sum[event];
  const waiting = all > 0 ? percent(columns.wait_sum[event] / all) : "0.0%";
  return `${threads}, busiest ${duration(columns.busy_max[event])}, ${waiting} of their time waiting`;
}

