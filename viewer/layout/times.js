// How long a backend computed and copied in a range, as the reports have it for the whole recording: what
// overlaps counts once, between its kernels an op does nothing, and where a backend computes and copies at
// once, it computes.

import { lowerBound } from "./visible.js";

/** Times that do not overlap, by start, and how long those before each are together. */
class Union {
  constructor() {
    /** @type {number[]} */
    this.starts = [];
    /** @type {number[]} */
    this.ends = [];
    /** @type {number[]} */
    this.before = [];
  }

  // None starts earlier than the last one.
  /** @param {number} start @param {number} end */
  add(start, end) {
    const last = this.ends.length - 1;
    if (last >= 0 && start <= this.ends[last]) {
      this.ends[last] = Math.max(this.ends[last], end);
      return;
    }
    this.before.push(last < 0 ? 0 : this.before[last] + this.ends[last] - this.starts[last]);
    this.starts.push(start);
    this.ends.push(end);
  }

  // How much of the time until then they cover.
  /** @param {number} time */
  until(time) {
    const at = lowerBound(this.starts, time, 0) - 1;
    return at < 0 ? 0 : this.before[at] + Math.min(this.ends[at], time) - this.starts[at];
  }

  /** @param {Span} range */
  within({ start, end }) {
    return Math.max(this.until(end) - this.until(start), 0);
  }
}

/** When each backend worked. */
export class Times {
  /** @param {Recording} recording */
  constructor(recording) {
    this.recording = recording;
    /** @type {{ busy: Union, active: Union, untimed: number[] }[]} */
    this.backends = recording.backends.map(() => ({ busy: new Union(), active: new Union(), untimed: [] }));
    const { columns, device } = recording;
    // Events for which devices did nothing that was recorded, and what they did for the others: both by
    // start.
    let work = 0;
    /** @param {number} before */
    const addWork = (before) => {
      for (; work < device.count && device.start(work) < before; work += 1) {
        this.add(device.event(work), device.start(work), device.end(work));
      }
    };
    for (let event = 0; event < recording.count; event += 1) {
      if (recording.isUntimed(event)) {
        this.backends[columns.backend[event]].untimed.push(columns.start[event]);
      } else if (!device.hasAny(event)) {
        addWork(columns.start[event]);
        this.add(event, columns.start[event], recording.end(event));
      }
    }
    addWork(Infinity);
  }

  /** @param {number} event @param {number} start @param {number} end */
  add(event, start, end) {
    if (this.recording.isUntimed(event)) return;
    const { busy, active } = this.backends[this.recording.columns.backend[event]];
    if (!this.recording.isCopy(event)) busy.add(start, end);
    active.add(start, end);
  }

  // Copies of which only the call was timed have their part of what all such copies are estimated to take.
  /** @param {Backend} backend @param {Span} range @returns {BackendTimes} */
  within(backend, range) {
    const { busy, active, untimed } = this.backends[this.recording.backends.indexOf(backend)];
    const [computing, working] = [busy.within(range), active.within(range)];
    const left = Math.max(this.recording.recordedIn(range, backend.process) - working, 0);
    const begun = lowerBound(untimed, range.end, 0) - lowerBound(untimed, range.start, 0);
    const estimated = Math.min((backend.estimated * begun) / Math.max(untimed.length, 1), left);
    return { busy: computing, copying: working - computing + estimated, idle: left - estimated, inRange: true };
  }
}
