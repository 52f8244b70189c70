// What there is to draw for the present state: rows, colours, and what is searched.

import { parseQuery } from "../data/query.js";
import { matches } from "../data/statistics.js";
import { colouring } from "./colours.js";
import { filter } from "./lanes.js";
import { allGroups, foldedAtFirst, leastDrawn } from "./groups.js";
import { arrange } from "./rows.js";
import { topRows } from "./runs.js";
import { Times } from "./times.js";
import { lowerBound } from "./visible.js";

const NO_LANE = 0xffff;

export class Scene {
  /** @param {Recording} recording */
  constructor(recording) {
    this.recording = recording;
    this.top = topRows(recording);
    this.groups = allGroups(recording, leastDrawn(recording, recording.drawn), (event) => this.colour(event));
    /** @param {number} event */
    this.label = (event) => recording.label(event);
    /** @param {number} event */
    this.parts = (event) => recording.parts(event);
    this.folded = foldedAtFirst(this.groups);
    this.lanes = this.groups.flatMap((group) => group.rows.filter(isLane));
    this.laneOfEvent = numberLanes(recording, this.lanes);
    this.links = linksByEvent(recording.columns);
    // What follows changes with the state.
    /** @type {(event: number) => string} */
    this.colour = (_event) => "";
    /** @type {PlacedRow[]} */
    this.rows = [];
    /** @type {Map<string, PlacedRow>} */
    this.rowByKey = new Map();
    this.height = 0;
    this.fixed = 0;
    /** @type {Span | null} */
    this.rangeOfTimes = null;
    /** @type {Map<string, BackendTimes>} */
    this.timesInRange = new Map();
    /** @type {Times | null} */
    this.times = null;
    // By the search box; and by that and the row of the statistics that was clicked.
    /** @type {Question | null} */
    this.searched = null;
    /** @type {Question | null} */
    this.keep = null;
    /** @type {Map<string, Lane | undefined>} */
    this.found = new Map();
  }

  /** @param {State} state */
  setColours({ colourBy, peaks }) {
    this.colour = colouring(this.recording, colourBy, peaks);
  }

  // Ops that are switched off in the legend leave their lanes, which stay where they are.
  /** @param {State} state */
  setRows(state) {
    const { rows, height, fixed } = arrange(this.top, this.groups, state);
    /** @param {number} event */
    const shown = (event) => !state.hidden.has(this.recording.op(event));
    this.rows = state.hidden.size === 0 ? rows : rows.map((row) => filtered(row, shown));
    this.height = height;
    this.fixed = fixed;
    this.rowByKey = new Map(this.rows.map((row) => [row.key, row]));
    this.found = new Map();
  }

  /** @param {State} state */
  setSearch({ query, highlight }) {
    const searched = (this.searched = parseQuery(query, this.recording));
    const clicked = highlight && matches(this.recording, highlight.path);
    this.keep = searched && clicked ? (event) => searched(event) && clicked(event) : searched || clicked;
    this.found = new Map();
  }

  // The part of a row that is searched; null if nothing is.
  /** @param {PlacedRow} row */
  matching(row) {
    if (!this.keep) return null;
    if (!this.found.has(row.key)) {
      const part = filtered(row, this.keep);
      this.found.set(row.key, part.lane ?? part.spans);
    }
    return this.found.get(row.key);
  }

  // How long a group's backend computed, copied and was idle in the range, or in the whole recording;
  // null where that is not known.
  /** @param {PlacedRow} row @param {Span | null} range @returns {BackendTimes | null} */
  timesOf({ group }, range) {
    const backend = group?.backend;
    if (!group || !backend || backend.busy === null || backend.copying === null || backend.idle === null) return null;
    const { busy, copying, idle } = backend;
    if (!range) return { busy, copying, idle, inRange: false };
    if (this.rangeOfTimes !== range) {
      this.rangeOfTimes = range;
      this.timesInRange.clear();
    }
    let times = this.timesInRange.get(group.key);
    // Worked out for the first range.
    this.times ??= new Times(this.recording);
    if (!times) this.timesInRange.set(group.key, (times = this.times.within(backend, range)));
    return times;
  }

  // The lane in which an event has its neighbours: that of its row, or if the group is collapsed
  // the one where it would be.
  /** @param {number} event */
  laneWith(event) {
    const row = this.rowOf(event);
    return row?.what === "summary" ? this.lanes[this.laneOfEvent[event]].lane : row?.lane;
  }

  // The row in which an event is drawn now; undefined if it is not drawn.
  /** @param {number} event */
  rowOf(event) {
    const home = this.lanes[this.laneOfEvent[event]];
    if (!home) return undefined;
    const process = this.recording.backends[home.backend ?? 0].process;
    return this.rowByKey.get(home.key) ?? this.rowByKey.get(`${home.backend}/all`) ?? this.rowByKey.get(`process ${process}/all`);
  }

  // The row in which a piece of a device's work is drawn now.
  /** @param {number} work */
  rowOfWork(work) {
    return this.rows.find(({ eventOf, spans }) => eventOf && spans && spans.events[lowerBound(spans.events, work, 0)] === work);
  }

  // Pairs of a copy and the op that waits for it, of which the event is one.
  /** @param {number} event */
  linksOf(event) {
    return this.links.get(event) ?? [];
  }
}

/** @param {Row} row @returns {row is LaneRow} */
function isLane(row) {
  return row.kind === "lane";
}

// A row with those of its things whose events satisfy `keep`.
/** @param {PlacedRow} row @param {Question} keep */
function filtered(row, keep) {
  if (row.lane) return { ...row, lane: filter(row.lane, keep) };
  const { eventOf, spans } = row;
  return eventOf && spans ? { ...row, spans: filter(spans, (thing) => keep(eventOf(thing))) } : row;
}

// Which lane each event is in, to find its row without searching.
/** @param {Recording} recording @param {LaneRow[]} lanes */
function numberLanes(recording, lanes) {
  const numbers = new Uint16Array(recording.count).fill(NO_LANE);
  lanes.forEach(({ lane: { events } }, number) => {
    for (let at = 0; at < events.length; at += 1) numbers[events[at]] = number;
  });
  return numbers;
}

/** @param {Columns} columns */
function linksByEvent({ link_copy, link_op }) {
  /** @type {Map<number, [number, number][]>} */
  const links = new Map();
  /** @param {number} event @param {[number, number]} link */
  const add = (event, link) => links.set(event, [...(links.get(event) ?? []), link]);
  link_copy.forEach((copy, at) => {
    add(copy, [copy, link_op[at]]);
    add(link_op[at], [copy, link_op[at]]);
  });
  return links;
}
