// The recording as the rest of the viewer sees it: columns of events in the order of time,
// tables of what repeats, and small questions about single events.

import { DeviceWork } from "./device.js";
import { Estimates } from "./estimates.js";

export const OP = 0;
export const COPY = 1;

export class Recording {
  /** @param {{ tables: Tables, columns: Columns }} embedded */
  constructor({ tables, columns }) {
    this.title = tables.title;
    this.facts = tables.facts;
    this.warnings = tables.warnings;
    this.wall = tables.wall;
    this.unrecorded = tables.unrecorded;
    this.clock = tables.clock;
    // How many events to draw at most; null for all.
    this.drawn = tables.drawn;
    this.processes = tables.processes;
    this.backends = tables.backends;
    this.phases = tables.phases;
    this.requests = tables.requests;
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
    // What holds until it changes, such as memory.
    this.levels = tables.levels;
    this.experts = tables.experts;
    this.overview = tables.overview;
    this.estimates = new Estimates(tables.estimates);
    // How the time of a token grows with its context.
    this.depth = tables.depth;
    // Ops and shapes have numbers, so that events are grouped without comparing text.
    this.opNames = tables.ops;
    this.shapes = tables.shapes;
    this.opOfNode = Uint32Array.from(this.nodes.signature, (at) => this.signatures[at].op);
    this.shapeOfNode = Uint32Array.from(this.nodes.signature, (at) => this.signatures[at].shape);
    this.movedOfNode = Float64Array.from(this.nodes.signature, (at) => this.signatures[at].moved ?? NaN);
    this.flopsOfNode = Float64Array.from(this.nodes.signature, (at) => this.signatures[at].flops ?? NaN);
  }

  // When nothing was recorded of a process; of all of them without one.
  /** @param {number | null} process */
  unrecordedOf(process) {
    return process === null ? this.unrecorded : this.processes[process].unrecorded;
  }

  // How much of the range was recorded, of a process or of any; of the whole recording without a range.
  /** @param {Span | null} range @param {number | null} [process] */
  recordedIn(range, process = null) {
    const [from, to] = range ? [range.start, range.end] : [0, this.wall];
    const missing = this.unrecordedOf(process).map(({ start, end }) => Math.max(Math.min(end, to) - Math.max(start, from), 0));
    return Math.max(to - from - missing.reduce((sum, time) => sum + time, 0), 0);
  }

  /** @param {number} event */
  start(event) {
    return this.columns.start[event];
  }

  /** @param {number} event */
  end(event) {
    return this.columns.start[event] + this.columns.duration[event];
  }

  /** @param {number} event */
  duration(event) {
    return this.columns.duration[event];
  }

  // The time that counts as the event's when times are added up: overlapping time counts once,
  // gaps between an op's kernels not at all.
  /** @param {number} event */
  charged(event) {
    if (this.isUntimed(event)) return 0;
    return this.columns.duration[event] - this.columns.uncharged[event];
  }

  /** @param {number} event */
  op(event) {
    return this.opOfNode[this.columns.node[event]];
  }

  /** @param {number} event */
  shape(event) {
    return this.shapeOfNode[this.columns.node[event]];
  }

  /** @param {number} event */
  signature(event) {
    return this.signatures[this.nodes.signature[this.columns.node[event]]];
  }

  /** @param {number} event */
  isCopy(event) {
    return this.columns.kind[event] === COPY;
  }

  /** @param {number} event */
  opName(event) {
    const { op, sub } = this.signature(event);
    return sub ? `${this.opNames[op]} ${sub}` : this.opNames[op];
  }

  // The fusion where there is one: it says more than the op alone.
  /** @param {number} event */
  label(event) {
    const { extra } = this.signature(event);
    return extra && !this.isCopy(event) ? extra : this.opName(event);
  }

  // The ops of a fusion; empty for what was not fused.
  /** @param {number} event */
  parts(event) {
    const { extra } = this.signature(event);
    return extra && !this.isCopy(event) && extra.includes("+") ? extra.split("+") : [];
  }

  /** @param {number} event */
  tensor(event) {
    return this.nodes.name[this.columns.node[event]] ?? "";
  }

  // Label and tensor: what tells an event from others of its op.
  /** @param {number} event */
  fullName(event) {
    return [this.label(event), this.tensor(event)].filter(Boolean).join(" ");
  }

  /** @param {number} event */
  backend(event) {
    return this.backends[this.columns.backend[event]];
  }

  // null where the tensor's name does not tell.
  /** @param {number} event */
  layer(event) {
    const layer = this.columns.layer[event];
    return layer === 0 ? null : layer - 1;
  }

  // The graph run that it belongs to; null for none.
  /** @param {number} event */
  run(event) {
    const run = this.columns.run[event];
    return run === 0 ? null : run - 1;
  }

  /** @param {number} event */
  phase(event) {
    const run = this.run(event);
    return run === null ? null : this.phases[this.runs.phase[run]];
  }

  // The numbers of the requests that it was computed for.
  /** @param {number} event */
  requestsOf(event) {
    const run = this.run(event);
    return run === null ? [] : this.runs.requests[run];
  }

  // Whether the duration is that of the work: a call that only starts work elsewhere has no rate.
  /** @param {number} event */
  hasRate(event) {
    return this.columns.measured[event] !== this.hostCall;
  }

  // Whether only the call that makes a copy was timed, which says nothing of the device.
  /** @param {number} event */
  isUntimed(event) {
    return this.columns.untimed[event] === 1;
  }

  // Bytes read and written; what a copy moves is its size. NaN if unknown.
  /** @param {number} event */
  moved(event) {
    if (this.isCopy(event)) return this.columns.bytes[event];
    return this.columns.attended_bytes[event] || this.movedOfNode[this.columns.node[event]];
  }

  /** @param {number} event */
  flops(event) {
    if (this.isCopy(event)) return 0;
    return this.columns.attended_flops[event] || this.flopsOfNode[this.columns.node[event]];
  }
}
