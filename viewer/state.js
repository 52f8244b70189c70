// What the page shows, and who wants to know when it changes. Data flows one way: people's
// actions change the state, and the state is drawn.

/** @param {Recording} recording @returns {State} */
export function initialState(recording) {
  return {
    view: { start: 0, end: Math.max(recording.wall, 1) },
    range: null,
    gap: null,
    selected: -1,
    work: -1,
    hovered: null,
    query: "",
    highlight: null,
    hidden: new Set(),
    collapsed: new Set(),
    pinned: new Set(),
    colourBy: "op",
    peaks: {},
    groupBy: "op",
    scroll: 0,
  };
}

export class Store {
  /** @param {State} state */
  constructor(state) {
    this.state = state;
    /** @type {{ names: string[], listener: (state: State) => void }[]} */
    this.listeners = [];
    /** @type {Set<string>} */
    this.changed = new Set();
  }

  // Listeners are told once per frame, with the names of all that changed in between.
  /** @param {Partial<State>} change */
  update(change) {
    Object.assign(this.state, change);
    if (this.changed.size === 0) requestAnimationFrame(() => this.tell());
    Object.keys(change).forEach((name) => this.changed.add(name));
  }

  // Calls `listener` when one of the named parts changes, and once at first.
  /** @param {(keyof State)[]} names @param {(state: State) => void} listener */
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
