// The state in the address, so that a bookmark or a reload shows the same.

const PAUSE = 300;

export function readHash(recording) {
  const hash = new URLSearchParams(location.hash.slice(1));
  const state = {};
  const view = span(hash.get("view"));
  if (view && view.end > view.start) state.view = { start: Math.max(view.start, 0), end: Math.min(view.end, Math.max(recording.wall, 1)) };
  if (state.view && state.view.end <= state.view.start) delete state.view;
  const range = span(hash.get("range"));
  if (range && range.end > range.start) state.range = range;
  const selected = Number(hash.get("selected") ?? -1);
  if (Number.isInteger(selected) && selected >= 0 && selected < recording.count) state.selected = selected;
  if (hash.get("search")) state.query = hash.get("search");
  return state;
}

function span(text) {
  const found = /^(\d+)-(\d+)$/.exec(text ?? "");
  return found ? { start: Number(found[1]), end: Number(found[2]) } : null;
}

// Writes after a pause: browsers refuse addresses that change all the time.
export function keepHash(store) {
  let timer = 0;
  const write = () => {
    const { view, range, selected, query } = store.state;
    const hash = new URLSearchParams({ view: text(view) });
    if (range) hash.set("range", text(range));
    if (selected >= 0) hash.set("selected", String(selected));
    if (query) hash.set("search", query);
    history.replaceState(null, "", `#${hash}`);
  };
  store.on(["view", "range", "selected", "query"], () => {
    clearTimeout(timer);
    timer = setTimeout(write, PAUSE);
  });
}

function text({ start, end }) {
  return `${Math.round(start)}-${Math.round(end)}`;
}
