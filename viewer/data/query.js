// What people type into the search box, as a question about an event.
//
// Words are looked for in op, tensor name and shape; `op:`, `tensor:`, `shape:`, `kernel:`,
// `backend:`, `layer:`, `phase:` and `request:` look in one place; `dur>50us` compares; `from:14:03` and
// `to:90s` are times of the clock or since the first event. All must hold; a minus in front turns a part
// around.

import { parseDuration, parseTime } from "./units.js";

/** @param {string} text @param {Recording} recording @returns {Question | null} */
export function parseQuery(text, recording) {
  const parts = text.trim().split(/\s+/).filter((part) => part !== "");
  /** @type {Question[]} */
  const questions = parts.map((part) => {
    if (part.length > 1 && part.startsWith("-")) {
      const question = parsePart(part.slice(1), recording);
      return (event) => !question(event);
    }
    return parsePart(part, recording);
  });
  return questions.length === 0 ? null : (event) => questions.every((question) => question(event));
}

/** @param {string} part @param {Recording} recording @returns {Question} */
function parsePart(part, recording) {
  const compared = /^dur([<>])(.+)$/.exec(part);
  const limit = compared && parseDuration(compared[2]);
  if (limit !== null && compared) {
    const longer = compared[1] === ">";
    return (event) => recording.duration(event) > limit === longer;
  }
  const [key, value] = split(part);
  /** @param {(node: number) => string} text */
  const node = (text) => nodesMatching(recording, text, value);
  const { columns } = recording;
  switch (key) {
    case "op": return ofNode(columns, node((at) => opText(recording, at)));
    case "tensor": return ofNode(columns, node((at) => recording.nodes.name[at] ?? ""));
    case "shape": return ofNode(columns, node((at) => shapeText(recording, at)));
    case "kernel": return ofKernels(recording.device, value);
    case "backend": return (event) => recording.backend(event).label.toLowerCase().includes(value);
    case "layer": return (event) => String(recording.layer(event)) === value;
    case "phase": return (event) => (recording.phase(event)?.label ?? "").toLowerCase().includes(value);
    case "request": return (event) => recording.requestsOf(event).some((request) => String(request) === value);
    case "from": return ofTime(value, recording, (event, time) => recording.start(event) >= time);
    case "to": return ofTime(value, recording, (event, time) => recording.start(event) < time);
    default: return ofNode(columns, node((at) => everything(recording, at)));
  }
}

const KEYS = ["op", "tensor", "shape", "kernel", "backend", "layer", "phase", "request", "from", "to"];

/** @param {string} part */
function split(part) {
  const at = part.indexOf(":");
  const key = part.slice(0, at).toLowerCase();
  return KEYS.includes(key) ? [key, part.slice(at + 1).toLowerCase()] : ["", part.toLowerCase()];
}

// What is not yet a time, because it is still being typed, leaves everything.
/** @param {string} text @param {Recording} recording @param {(event: number, time: number) => boolean} holds @returns {Question} */
function ofTime(text, recording, holds) {
  const time = parseTime(text, recording.clock);
  return time === null ? () => true : (event) => holds(event, time);
}

// Names repeat for every token: they are compared once per node, not once per event.
/** @param {Recording} recording @param {(node: number) => string} text @param {string} value */
function nodesMatching(recording, text, value) {
  return Uint8Array.from(recording.nodes.signature, (_, node) => (text(node).toLowerCase().includes(value) ? 1 : 0));
}

/** @param {Columns} columns @param {Uint8Array} matching @returns {Question} */
function ofNode(columns, matching) {
  return (event) => matching[columns.node[event]] === 1;
}

/** @param {DeviceWork} device @param {string} value @returns {Question} */
function ofKernels(device, value) {
  const matching = device.names.map((name) => name.toLowerCase().includes(value));
  return (event) => device.of(event).some((work) => matching[device.columns.work_name[work]]);
}

/** @param {Recording} recording @param {number} node */
function opText(recording, node) {
  const { op, sub, extra } = recording.signatures[recording.nodes.signature[node]];
  return `${recording.opNames[op]} ${sub ?? ""} ${extra ?? ""}`;
}

/** @param {Recording} recording @param {number} node */
function shapeText(recording, node) {
  return recording.shapes[recording.shapeOfNode[node]];
}

/** @param {Recording} recording @param {number} node */
function everything(recording, node) {
  return `${opText(recording, node)} ${recording.nodes.name[node] ?? ""} ${shapeText(recording, node)}`;
}
