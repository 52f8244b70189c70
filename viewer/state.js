// What the page shows, and who wants to know when it changes. Data flows one way: people's
// actions change the state, and the state is drawn.

export function initialState(recording) {
  return {
    view: { start: 0, end: Math.max(recording.wall, 1) },
    range: null,
    // The idle time that was clicked: `{ start, end, backend }`.
    gap: null,
    selected: -1,
    // The piece of a device's work for the selected event that was clicked.
    work: -1,
    hovered: null,
    query: "",
    // The row of the statistics that was clicked: `{ path, name }`.
    highlight: null,
    hidden: new Set(),
    collapsed: new Set(),
    pinned: new Set(),
    colourBy: "op",
    // Peaks that people gave, by backend: `{ bandwidth, compute }` in GB/s and GFLOP/s.
    peaks: {},
    groupBy: "op",
    scroll: 0,
  };
}

export class Store {
  constructor(state) {
    this.state = state;
    this.listeners = [];
    this.changed = new Set();
  }

  // Listeners are told once per frame, with the names of all that changed in between.
  update(change) {
    Object.assign(this.state, change);
    if (this.changed.size === 0) requestAnimationFrame(() => this.tell());
    Object.keys(change).forEach((name) => this.changed.add(name));
  }

  // Calls `listener` when one of the named parts changes, and once at first.
  on(names, listener) {
    this.listeners.push({ names, listener });
    listener(this.state);
  }

  // Tells now: for those who need the answers of listeners before the next frame.
  flush() {
    if (this.changed.size > 0) this.tell();
  }

  tell() {
    const changed = this.changed;
    this.changed = new Set();
    for (const { names, listener } of this.listeners) {
      if (names.some((name) => changed.has(name))) listener(this.state);
    }
  }
}
