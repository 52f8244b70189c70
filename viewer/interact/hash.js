// The state in the address, so that a bookmark or a reload shows the same.

const PAUSE = 300;

/** @param {Recording} recording */
export function readHash(recording) {
  const hash = new URLSearchParams(location.hash.slice(1));
  const end = Math.max(recording.wall, 1);
  const view = span(hash.get("view"), end);
  // Graph runs can end after the last event.
  const range = span(hash.get("range"), Infinity);
  const selected = Number(hash.get("selected") ?? -1);
  const known = Number.isInteger(selected) && selected >= 0 && selected < recording.count;
  const query = hash.get("search");
  return {
    ...(view && { view }),
    ...(range && { range }),
    ...(known && { selected }),
    ...(query && { query }),
    peaks: readPeaks(hash.getAll("peak"), recording),
  };
}

// `12-345`, as far as it is below `most`; null for anything else.
/** @param {string | null} text @param {number} most */
function span(text, most) {
  const found = /^(\d+)-(\d+)$/.exec(text ?? "");
  if (!found) return null;
  const [start, end] = [Number(found[1]), Math.min(Number(found[2]), most)];
  return end > start ? { start, end } : null;
}

// `backend:GB/s:GFLOP/s`, either of them may be missing.
/** @param {string[]} texts @param {Recording} recording */
function readPeaks(texts, recording) {
  /** @type {Peaks} */
  const peaks = {};
  for (const text of texts) {
    const [backend, bandwidth, compute] = text.split(":").map(Number);
    if (!recording.backends[backend]) continue;
    peaks[backend] = { ...(bandwidth > 0 && { bandwidth }), ...(compute > 0 && { compute }) };
  }
  return peaks;
}

// Writes after a pause: browsers refuse addresses that change all the time.
/** @param {Store} store */
export function keepHash(store) {
  let timer = 0;
  const write = () => {
    const { view, range, selected, query, peaks } = store.state;
    const hash = new URLSearchParams({ view: text(view) });
    if (range) hash.set("range", text(range));
    if (selected >= 0) hash.set("selected", String(selected));
    if (query) hash.set("search", query);
    for (const [backend, { bandwidth, compute }] of Object.entries(peaks)) hash.append("peak", `${backend}:${bandwidth ?? ""}:${compute ?? ""}`);
    history.replaceState(null, "", `#${hash}`);
  };
  store.on(["view", "range", "selected", "query", "peaks"], () => {
    clearTimeout(timer);
    timer = setTimeout(write, PAUSE);
  });
}

/** @param {Span} span */
function text({ start, end }) {
  return `${Math.round(start)}-${Math.round(end)}`;
}
