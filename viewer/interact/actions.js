// What people can do, whichever key or pointer they do it with.

import { eventsIn } from "../data/statistics.js";
import { lowerBound } from "../layout/visible.js";

const SHORTEST_VIEW = 20;
// Around an event that is gone to: enough to see its neighbours.
const ROOM = 12;

export class Actions {
  /** @param {Store} store @param {Scene} scene */
  constructor(store, scene) {
    this.store = store;
    this.scene = scene;
    this.wall = Math.max(scene.recording.wall, 1);
  }

  get state() {
    return this.store.state;
  }

  /** @param {number} start @param {number} end */
  show(start, end) {
    const span = Math.min(Math.max(end - start, SHORTEST_VIEW), this.wall);
    const middle = (start + end) / 2;
    const from = Math.min(Math.max(middle - span / 2, 0), this.wall - span);
    this.store.update({ view: { start: from, end: from + span } });
  }

  fit() {
    this.show(0, this.wall);
  }

  // Fits what is selected; the whole recording if nothing is, or if it is in view already.
  focus() {
    const { range, selected, view } = this.state;
    const { recording } = this.scene;
    let target = range;
    if (!target && selected >= 0) {
      const room = Math.max(recording.duration(selected) * ROOM, SHORTEST_VIEW) / 2;
      const middle = (recording.start(selected) + recording.end(selected)) / 2;
      target = { start: middle - room, end: middle + room };
    }
    /** @param {number} a @param {number} b */
    const close = (a, b) => Math.abs(a - b) < (view.end - view.start) / 50;
    if (!target || (close(view.start, target.start) && close(view.end, target.end))) this.fit();
    else this.show(target.start, target.end);
  }

  // Zooms so that `fraction` of the width stays where it is.
  /** @param {number} factor @param {number} fraction */
  zoom(factor, fraction) {
    const { start, end } = this.state.view;
    const span = Math.min(Math.max((end - start) * factor, SHORTEST_VIEW), this.wall);
    const at = start + (end - start) * fraction;
    this.show(at - span * fraction, at + span * (1 - fraction));
  }

  /** @param {number} length */
  span(length) {
    const { view, selected } = this.state;
    const { recording } = this.scene;
    const middle = selected >= 0 ? (recording.start(selected) + recording.end(selected)) / 2 : (view.start + view.end) / 2;
    this.show(middle - length / 2, middle + length / 2);
  }

  /** @param {number} fraction */
  pan(fraction) {
    const { start, end } = this.state.view;
    const shift = (end - start) * fraction;
    const allowed = Math.min(Math.max(shift, -start), this.wall - end);
    this.store.update({ view: { start: start + allowed, end: end + allowed } });
  }

  /** @param {number} pixels @param {number} visible */
  scroll(pixels, visible) {
    const most = Math.max(this.scene.height - visible, 0);
    this.store.update({ scroll: Math.min(Math.max(this.state.scroll + pixels, 0), most) });
  }

  /** @param {number} event */
  select(event) {
    this.store.update({ selected: event, work: -1 });
  }

  // A kernel is selected together with the event that it was done for.
  /** @param {number} work */
  selectWork(work) {
    this.store.update({ selected: this.scene.recording.device.event(work), work });
  }

  // Shows an idle time with what is on both sides of it.
  /** @param {Gap} gap */
  showGap(gap) {
    const room = (gap.end - gap.start) / 2;
    this.show(gap.start - room, gap.end + room);
    this.store.update({ gap });
  }

  // Selects an event and brings it into view if it is not.
  /** @param {number} event */
  goTo(event) {
    const { view } = this.state;
    const { recording } = this.scene;
    const [start, end] = [recording.start(event), recording.end(event)];
    const tiny = ((end - start) / (view.end - view.start)) * 1000 < 2;
    if (start < view.start || end > view.end || tiny) {
      const half = tiny ? Math.max((end - start) * 20, SHORTEST_VIEW) : (view.end - view.start) / 2;
      this.show((start + end) / 2 - half, (start + end) / 2 + half);
    }
    this.select(event);
  }

  // The next event of the same lane, or the one before.
  /** @param {number} direction */
  step(direction) {
    const { selected, view } = this.state;
    const lane = selected >= 0 ? this.scene.laneWith(selected) : this.scene.rows.find((row) => row.kind === "lane")?.lane;
    if (!lane) return;
    const at = selected >= 0 ? lowerBound(lane.events, selected, 0) + direction : lowerBound(lane.starts, view.start, 0);
    if (at >= 0 && at < lane.events.length) this.goTo(lane.events[at]);
  }

  // The next event that is searched, or the one before, from the selected one on.
  /** @param {number} direction */
  stepMatch(direction) {
    // Enter can come in the same frame as the last letter.
    this.store.flush();
    const events = this.matches();
    if (events.length === 0) return;
    const { selected, view } = this.state;
    const from = selected >= 0 ? selected : lowerBound(this.scene.recording.columns.start, view.start, 0) - 1;
    let at = lowerBound(events, direction > 0 ? from + 1 : from, 0) + (direction > 0 ? 0 : -1);
    if (at >= events.length) at = 0;
    if (at < 0) at = events.length - 1;
    this.goTo(events[at]);
  }

  matches() {
    return this.scene.keep ? eventsIn(this.scene.recording, this.state.range, this.scene.keep) : new Uint32Array(0);
  }

  // First what is searched, then what is selected.
  clear() {
    const { query, highlight, range, gap } = this.state;
    if (query || highlight) this.store.update({ query: "", highlight: null });
    else if (gap) this.store.update({ gap: null });
    else if (range) this.store.update({ range: null });
    else this.select(-1);
  }

  /** @param {"collapsed" | "pinned"} name @param {string} key */
  toggle(name, key) {
    const set = new Set(this.state[name]);
    if (!set.delete(key)) set.add(key);
    this.store.update({ [name]: set });
  }
}
