// Puts the page together: data, state, drawing, panels.

import { readEmbedded } from "./data/embedded.js";
import { Recording } from "./data/recording.js";
import { RULER } from "./draw/canvas.js";
import { drawMinimap, drawViewport } from "./draw/minimap.js";
import { drawOverlay } from "./draw/overlay.js";
import { drawTimeline } from "./draw/timeline.js";
import { Actions } from "./interact/actions.js";
import { keepHash, readHash } from "./interact/hash.js";
import { handleKeys } from "./interact/keyboard.js";
import { isLinked, linkPages } from "./interact/link.js";
import { handleMinimap } from "./interact/minimap.js";
import { handlePointer } from "./interact/pointer.js";
import { Scene } from "./layout/scene.js";
import { details } from "./panels/details.js";
import { element } from "./panels/element.js";
import { expertsPanel } from "./panels/experts.js";
import { gapsPanel } from "./panels/gaps.js";
import { head } from "./panels/head.js";
import { helpDialog } from "./panels/help.js";
import { legend } from "./panels/legend.js";
import { overviewPanel } from "./panels/overview.js";
import { depthPanel } from "./panels/depth.js";
import { rooflinePanel } from "./panels/roofline.js";
import { requestsPanel } from "./panels/requests.js";
import { searchBox } from "./panels/search.js";
import { statisticsPanel } from "./panels/statistics.js";
import { tabs } from "./panels/tabs.js";
import { toolbar } from "./panels/toolbar.js";
import { tooltip } from "./panels/tooltip.js";
import { initialState, Store } from "./state.js";

async function main() {
  const recording = new Recording(await readEmbedded(takeBlock()));
  const scene = new Scene(recording);
  const store = new Store({ ...initialState(recording), collapsed: scene.folded, ...readHash(recording) });
  const actions = new Actions(store, scene);
  store.on(["colourBy", "peaks"], (state) => scene.setColours(state));
  store.on(["collapsed", "pinned", "hidden"], (state) => scene.setRows(state));
  store.on(["query", "highlight"], (state) => scene.setSearch(state));
  const surfaces = buildTimeline(recording, scene, store, actions);
  draw(scene, store, surfaces);
  // The tables can wait until the timeline is on the screen.
  setTimeout(() => buildPanels(scene, store, actions), 0);
  // A frame has no address of its own.
  if (isLinked()) linkPages(recording, store, actions);
  else keepHash(store);
  performance.mark("ggprof-drawn");
}

// The text of the data block, which is not kept.
function takeBlock() {
  const block = document.getElementById("recording");
  const text = block?.textContent ?? "";
  block?.remove();
  return text;
}

/** @param {string} name @param {string} [label] */
function canvas(name, label) {
  return element("canvas", { class: name, ...(label ? { role: "img", "aria-label": label, tabindex: 0 } : { "aria-hidden": "true" }) });
}

/** @param {Recording} recording @param {Scene} scene @param {Store} store @param {Actions} actions */
function buildTimeline(recording, scene, store, actions) {
  const surfaces = {
    minimap: canvas("under"), viewport: canvas("over", "The whole recording; drag to choose the part that is shown"),
    timeline: canvas("under"), overlay: canvas("over", "Timeline; the tables below hold the same figures"),
  };
  const help = helpDialog();
  const search = searchBox(scene, store, actions);
  const stage = element("div", { class: "stage" }, surfaces.timeline, surfaces.overlay);
  document.body.append(
    head(recording),
    toolbar(store, actions, search.box, help.toggle),
    element("div", { class: "minimap" }, surfaces.minimap, surfaces.viewport),
    stage, help.dialog);
  stage.append(tooltip(scene, store, stage));
  store.on(["collapsed", "pinned"], () => {
    stage.style.setProperty("--rows", `${scene.height + 30}px`);
    // What was scrolled to may not be there any more.
    actions.scroll(0, stage.clientHeight - RULER);
  });
  handlePointer(surfaces.overlay, scene, store, actions);
  handleMinimap(surfaces.viewport, scene, store, actions);
  handleKeys(actions, { openSearch: search.open, toggleHelp: help.toggle, closeHelp: help.close });
  return surfaces;
}

/** @param {Scene} scene @param {Store} store @param {Actions} actions */
function buildPanels(scene, store, actions) {
  const detailPanel = element("aside", { class: "details", "aria-label": "Selected event", "aria-live": "polite" });
  details(detailPanel, scene, store);
  const lower = element("main", { class: "lower" }, tabs(store, [
    { title: "Overview", panel: overviewPanel(scene, store, actions) },
    { title: "Statistics", panel: statisticsPanel(scene, store) },
    ...(scene.recording.requests.list.length > 0 ? [{ title: "Requests", panel: requestsPanel(scene.recording, store, actions) }] : []),
    { title: "Idle times", ...gapsPanel(scene, store, actions) },
    { title: "Roofline", ...rooflinePanel(scene, store) },
    ...(scene.recording.experts.length > 0 ? [{ title: "Experts", ...expertsPanel(scene.recording.experts) }] : []),
    { title: "Depth", ...depthPanel(scene, store, actions) },
  ]), detailPanel);
  document.querySelector(".minimap")?.before(legend(scene, store));
  document.body.append(lower);
  store.update({ scroll: store.state.scroll });
}

/** @type {(keyof State)[]} */
const DRAWN = ["view", "scroll", "collapsed", "pinned", "hidden", "colourBy", "peaks", "query", "highlight"];

/** @param {Scene} scene @param {Store} store @param {ReturnType<typeof buildTimeline>} surfaces */
function draw(scene, store, { minimap, viewport, timeline, overlay }) {
  const under = () => drawTimeline(timeline, scene, store.state);
  const over = () => drawOverlay(overlay, scene, store.state);
  const whole = () => drawMinimap(minimap, scene);
  const part = () => drawViewport(viewport, scene, store.state);
  const all = () => [under, over, whole, part].forEach((draw) => draw());
  store.on(["colourBy", "peaks"], whole);
  store.on(["view", "range"], part);
  store.on([...DRAWN, "range"], under);
  store.on([...DRAWN, "range", "gap", "selected", "work", "hovered"], over);
  new ResizeObserver(all).observe(timeline);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", all);
}

main().catch((error) => document.body.append(element("p", { class: "loss" }, `This page cannot show its recording: ${error.message}`)));
