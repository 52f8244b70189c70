// The requests that a server answered, and the longest waits of their tokens.

import { clockTime, count, duration, tokenRate } from "../data/units.js";
import { element } from "./element.js";

const HINT = "A request begins with its first batch: time in a queue before is not known. A click selects its time and searches its events.";

/** @param {Recording} recording @param {Store} store @param {Actions} actions */
export function requestsPanel({ requests, clock }, store, actions) {
  /** @param {number} request @param {Span} span */
  const go = (request, { start, end }) => {
    const range = { start: Math.max(start, 0), end };
    actions.show(range.start, range.end);
    store.update({ range, query: `request:${request}` });
  };
  /** @param {number} time */
  const when = (time) => (clock === null ? duration(time) : clockTime(clock + time / 1e6));
  /** @param {number | null} number */
  const known = (number) => (number === null ? "" : count(number));
  const lines = requests.list.map((request) => {
    const [p50, p95] = request.waits ?? [null, null];
    const cells = [
      `${request.number}${request.warmUp ? " (warm-up)" : ""}${request.beganBefore ? " (began before)" : ""}`, when(request.start), known(request.prompt), known(request.reused), known(request.chunks), duration(request.first),
      count(request.generated), request.rate === null ? "" : tokenRate(request.rate), duration(p50), duration(p95), duration(request.longest), request.for ?? "",
    ];
    return line(cells, () => go(request.number, request));
  });
  const stalls = requests.stalls.map((stall) => line(
    [String(stall.request), when(stall.start), duration(stall.end - stall.start), duration(stall.cause), stall.for],
    () => go(stall.request, stall)));
  return element("div", { class: "requests" },
    element("p", { class: "faint" }, HINT),
    table(["Request", "Clock", "Prompt", "Reused", "Chunks", "First token", "Generated", "Speed", "Wait p50", "p95", "Longest", "Waiting for"], lines),
    ...(stalls.length > 0 ? [element("h2", {}, "Stalls: the longest waits between two tokens of a sequence"), table(["Request", "Clock", "Wait", "Of it", "Waiting for"], stalls)] : []));
}

/** @param {string[]} titles @param {HTMLElement[]} lines */
function table(titles, lines) {
  return element("table", { class: "gaps" }, element("thead", {}, element("tr", {}, ...titles.map((title) => element("th", { scope: "col" }, title)))), element("tbody", {}, ...lines));
}

/** @param {string[]} cells @param {() => void} choose */
function line(cells, choose) {
  return element("tr", { tabindex: 0, onclick: choose, onkeydown: (event) => event.key === "Enter" && choose() }, ...cells.map((text) => element("td", {}, text)));
}
