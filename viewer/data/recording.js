// The recording as the rest of the viewer sees it: columns of events in the order of time,
// tables of what repeats, and small questions about single events.

import { DeviceWork } from "./device.js";

export const OP = 0;
export const COPY = 1;

export class Recording {
  /** @param {{ tables: Tables, columns: Columns }} embedded */
  constructor({ tables, columns }) {
    this.title = tables.title;
    this.facts = tables.facts;
    this.warnings = tables.warnings;
    this.wall = tables.wall;
    // How many events to draw at most; null for all.
    this.drawn = tables.drawn;
    this.backends = tables.backends;
    this.phases = tables.phases;
    this.runs = tables.runs;
    this.nodes = tables.nodes;
    this.signatures = tables.signatures;
    this.measured = tables.measured;
    this.modules = tables.modules;
    this.columns = columns;
    this.hostCall = this.measured.indexOf("host_call");
    this.count = columns.start.length;
    this.device = new DeviceWork(columns, tables.kernels, this.count);
    // What the host did that is no op, by start.
    this.tasks = tables.tasks;
    /** @type {string[]} */
    this.opNames = [];
    /** @type {string[]} */
    this.shapes = [];
    /** @type {number[]} */
    this.opOfSignature = [];
    /** @type {number[]} */
    this.shapeOfSignature = [];
    this.indexSignatures();
    this.opOfNode = Uint32Array.from(this.nodes.signature, (at) => this.opOfSignature[at]);
    this.shapeOfNode = Uint32Array.from(this.nodes.signature, (at) => this.shapeOfSignature[at]);
    this.movedOfNode = Float64Array.from(this.nodes.signature, (at) => this.signatures[at].moved ?? NaN);
    this.flopsOfNode = Float64Array.from(this.nodes.signature, (at) => this.signatures[at].flops ?? NaN);
  }

  // Ops and shapes get numbers, so that events are grouped without comparing text.
  indexSignatures() {
    const ops = new Map();
    const shapes = new Map();
    for (const signature of this.signatures) {
      this.opOfSignature.push(number(ops, this.opNames, signature.op));
      const text = signature.sources.filter((source) => source !== "").join(" × ") || signature.output || "unknown shape";
      this.shapeOfSignature.push(number(shapes, this.shapes, text));
    }
  }

  start(event) {
    return this.columns.start[event];
  }

  end(event) {
    return this.columns.start[event] + this.columns.duration[event];
  }

  duration(event) {
    return this.columns.duration[event];
  }

  // The time that counts as the event's when times are added up: overlapping time counts once,
  // gaps between an op's kernels not at all.
  charged(event) {
    return this.columns.duration[event] - this.columns.uncharged[event];
  }

  op(event) {
    return this.opOfNode[this.columns.node[event]];
  }

  shape(event) {
    return this.shapeOfNode[this.columns.node[event]];
  }

  signature(event) {
    return this.signatures[this.nodes.signature[this.columns.node[event]]];
  }

  isCopy(event) {
    return this.columns.kind[event] === COPY;
  }

  // The fusion where there is one: it says more than the op alone.
  label(event) {
    const { op, sub, extra } = this.signature(event);
    if (extra && !this.isCopy(event)) return extra;
    return sub ? `${op} ${sub}` : op;
  }

  // The ops of a fusion; empty for what was not fused.
  parts(event) {
    const { extra } = this.signature(event);
    return extra && !this.isCopy(event) && extra.includes("+") ? extra.split("+") : [];
  }

  tensor(event) {
    return this.nodes.name[this.columns.node[event]] ?? "";
  }

  // Label and tensor: what tells an event from others of its op.
  fullName(event) {
    return [this.label(event), this.tensor(event)].filter(Boolean).join(" ");
  }

  backend(event) {
    return this.backends[this.columns.backend[event]];
  }

  // null where the tensor's name does not tell.
  layer(event) {
    const layer = this.columns.layer[event];
    return layer === 0 ? null : layer - 1;
  }

  phase(event) {
    const run = this.columns.run[event];
    return run === 0 ? null : this.phases[this.runs.phase[run - 1]];
  }

  // Whether the duration is that of the work: a call that only starts work elsewhere has no rate.
  hasRate(event) {
    return this.columns.measured[event] !== this.hostCall;
  }

  // Bytes read and written; what a copy moves is its size. NaN if unknown.
  moved(event) {
    return this.isCopy(event) ? this.columns.bytes[event] : this.movedOfNode[this.columns.node[event]];
  }

  flops(event) {
    return this.isCopy(event) ? 0 : this.flopsOfNode[this.columns.node[event]];
  }
}

function number(known, list, text) {
  if (!known.has(text)) {
    known.set(text, list.length);
    list.push(text);
  }
  return known.get(text);
}
