// Two recordings on one page, each in a frame: what one shows and selects, the other does too. Times of
// the two have nothing in common, so a place is told as the n-th graph run of a kind of phase (the n-th
// token) and the time since its start.

/** @param {Recording} recording @param {Store} store @param {Actions} actions */
export function linkPages(recording, store, actions) {
  if (!isLinked()) return;
  const places = new Places(recording);
  // What came from the other frame is not told back.
  let follows = { view: false, selected: false };
  window.addEventListener("message", ({ source, data }) => {
    if (source !== window.parent) return;
    const start = data?.view && places.time(data.view.place);
    if (typeof start === "number") {
      follows.view = true;
      actions.show(start, start + data.view.span);
    }
    if (data?.selected !== undefined) {
      follows.selected = true;
      actions.select(data.selected ? places.event(data.selected) : -1);
    }
  });
  /** @param {"view" | "selected"} name @param {() => unknown} told */
  const tell = (name, told) => {
    if (follows[name]) follows[name] = false;
    else window.parent.postMessage({ [name]: told() }, "*");
  };
  store.on(["view"], ({ view }) => tell("view", () => ({ place: places.place(view.start), span: view.end - view.start })));
  store.on(["selected"], ({ selected }) => tell("selected", () => (selected >= 0 ? places.name(selected) : null)));
}

export function isLinked() {
  return window.parent !== window;
}

class Places {
  /** @param {Recording} recording */
  constructor(recording) {
    this.recording = recording;
    /** @type {Map<string, number>} */
    this.runs = new Map();
    /** @type {string[]} */
    this.names = [];
    const counts = new Map();
    recording.runs.start.forEach((_, run) => {
      const kind = recording.phases[recording.runs.phase[run]]?.kind ?? -1;
      const number = counts.get(kind) ?? 0;
      counts.set(kind, number + 1);
      this.names.push(`${kind}:${number}`);
      this.runs.set(`${kind}:${number}`, run);
    });
  }

  // The graph run that began last, and how long ago.
  /** @param {number} time */
  place(time) {
    const { start } = this.recording.runs;
    let run = 0;
    while (run + 1 < start.length && start[run + 1] <= time) run += 1;
    return { run: this.names[run] ?? "", since: time - (start[run] ?? 0) };
  }

  /** @param {{ run: string, since: number }} place */
  time({ run, since }) {
    const at = this.runs.get(run);
    return at === undefined ? null : this.recording.runs.start[at] + since;
  }

  // An event by its graph run, its tensor and its op.
  /** @param {number} event */
  name(event) {
    const run = this.names[this.recording.run(event) ?? -1] ?? "";
    return { run, tensor: this.recording.tensor(event), op: this.recording.opNames[this.recording.op(event)] };
  }

  // The event of the same name; one of the same tensor if there is none, as for fused ops.
  /** @param {{ run: string, tensor: string, op: string }} name */
  event({ run, tensor, op }) {
    const wanted = this.runs.get(run);
    let found = -1;
    if (wanted === undefined) return found;
    for (let event = 0; event < this.recording.count; event++) {
      if (this.recording.run(event) !== wanted || this.recording.tensor(event) !== tensor) continue;
      if (this.recording.opNames[this.recording.op(event)] === op) return event;
      found = event;
    }
    return found;
  }
}
