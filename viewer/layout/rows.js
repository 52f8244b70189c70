// Which rows are shown, and where: the top rows and pinned ones stay, the others scroll.

const HEIGHTS = { band: 22, fold: 16, phases: 20, requests: 18, runs: 18, group: 20, lane: 24, thread: 16, stream: 18, counter: 30 };

// The rows that are shown, with their places, pinned ones first. A closed band hides its groups.
/** @param {Row[]} top @param {Group[]} groups @param {State} state */
export function arrange(top, groups, { collapsed, pinned }) {
  const rows = [...top];
  const every = groups.flatMap((group) => [group.summary, ...group.rows].map((row) => ({ ...row, group })));
  let band = null;
  rows.push(...every.filter((row) => pinned.has(row.key)).map((row) => ({ ...row, pinned: true, of: row.group.backend?.label ?? row.group.label, label: `${row.group.backend?.label ?? row.group.label} ${row.label}` })));
  for (const group of groups) {
    if (group.band && group.band !== band) rows.push(...bandRows(group.band, collapsed));
    band = group.band;
    if (band && collapsed.has(band.key)) continue;
    const isCollapsed = collapsed.has(group.key);
    rows.push({ kind: "group", label: group.label, key: group.key, group, collapsed: isCollapsed });
    rows.push(...(isCollapsed ? [group.summary] : unfolded(group.rows, collapsed)));
  }
  return place(rows);
}

/** @param {Band} band @param {Set<string>} collapsed @returns {Row[]} */
function bandRows({ key, label, summary }, collapsed) {
  const isCollapsed = collapsed.has(key);
  return [{ kind: "band", label, key, collapsed: isCollapsed }, ...(isCollapsed ? [summary] : [])];
}

/** @param {Row[]} rows @param {Set<string>} collapsed */
function unfolded(rows, collapsed) {
  const shown = rows.filter(({ foldedBy }) => foldedBy === undefined || !collapsed.has(foldedBy));
  return shown.map((row) => (row.kind === "fold" ? { ...row, collapsed: collapsed.has(row.key) } : row));
}

/** @param {Row[]} rows */
function place(rows) {
  let y = 0;
  let fixed = 0;
  const placed = rows.map((row) => {
    const height = row.height ?? HEIGHTS[row.kind];
    const stays = row.top === true || row.pinned === true;
    const one = { ...row, y, height, fixed: stays };
    y += height;
    if (stays) fixed = y;
    return one;
  });
  return { rows: placed, height: y, fixed };
}

// Where a row begins now, from the top of all rows.
/** @param {PlacedRow} row @param {number} scroll */
export function topOf(row, scroll) {
  return row.fixed ? row.y : row.y - scroll;
}

// The row at a height from the top of all rows.
/** @param {PlacedRow[]} rows @param {number} fixed @param {number} scroll @param {number} y */
export function rowAtHeight(rows, fixed, scroll, y) {
  return rows.find((row) => row.fixed === y < fixed && y >= topOf(row, scroll) && y < topOf(row, scroll) + row.height);
}
