// What devices did for the events: kernels, copies and fills, in the order of time.

const KINDS = ["kernel", "copy", "fill"];
const CONCURRENT = 1;
const FIRST_USE = 2;

export class DeviceWork {
  /** @param {Columns} columns @param {string[]} names @param {number} events */
  constructor(columns, names, events) {
    this.columns = columns;
    this.names = names;
    this.count = columns.work_event.length;
    const { first, order } = byEvent(columns.work_event, events);
    this.first = first;
    this.order = order;
  }

  /** @param {number} work */
  event(work) {
    return this.columns.work_event[work];
  }

  /** @param {number} work */
  start(work) {
    return this.columns.work_start[work];
  }

  /** @param {number} work */
  end(work) {
    return this.columns.work_start[work] + this.columns.work_duration[work];
  }

  /** @param {number} work */
  duration(work) {
    return this.columns.work_duration[work];
  }

  // The part of its time that counts: overlapping time counts once.
  /** @param {number} work */
  charged(work) {
    return this.columns.work_duration[work] - this.columns.work_uncharged[work];
  }

  /** @param {number} work */
  name(work) {
    return this.names[this.columns.work_name[work]];
  }

  /** @param {number} work */
  kind(work) {
    return KINDS[this.columns.work_kind[work]];
  }

  /** @param {number} work */
  stream(work) {
    return this.columns.work_stream[work];
  }

  /** @param {number} work */
  bytes(work) {
    return this.columns.work_bytes[work];
  }

  // Nothing kept it apart from other work: its own time cannot be told exactly.
  /** @param {number} work */
  isConcurrent(work) {
    return (this.columns.work_flags[work] & CONCURRENT) !== 0;
  }

  /** @param {number} work */
  isFirstUse(work) {
    return (this.columns.work_flags[work] & FIRST_USE) !== 0;
  }

  /** @param {number} event */
  hasAny(event) {
    return this.count > 0 && this.first[event] < this.first[event + 1];
  }

  // What was done for an event, in the order of time.
  /** @param {number} event */
  of(event) {
    return this.count === 0 ? new Uint32Array(0) : this.order.subarray(this.first[event], this.first[event + 1]);
  }
}

// For each event where its work begins in `order`, and with the last entry where all ends.
/** @param {Column} eventOfWork @param {number} events */
function byEvent(eventOfWork, events) {
  if (eventOfWork.length === 0) return { first: new Uint32Array(0), order: new Uint32Array(0) };
  const first = new Uint32Array(events + 1);
  for (let work = 0; work < eventOfWork.length; work += 1) first[eventOfWork[work] + 1] += 1;
  for (let event = 0; event < events; event += 1) first[event + 1] += first[event];
  const next = first.slice();
  const order = new Uint32Array(eventOfWork.length);
  for (let work = 0; work < eventOfWork.length; work += 1) {
    order[next[eventOfWork[work]]] = work;
    next[eventOfWork[work]] += 1;
  }
  return { first, order };
}
