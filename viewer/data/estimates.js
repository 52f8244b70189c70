// What is estimated beyond what was measured: of splits that were timed as wholes, how long their ops
// took, and of copies of which only the call was timed, how long the device took. Estimates are of the
// whole recording; the script that wrote the page knows them for each row of the totals.

/** @typedef {{ ns: number, error: number | null, calls: number, covers: number }} Amount */
/** @typedef {{ own: Amount | null, inner: Map<number, Group> }} Group */

export class Estimates {
  /** @param {{ [grouping: string]: Estimate[] }} rows */
  constructor(rows) {
    /** @type {Map<string, Group>} */
    this.groupings = new Map(Object.entries(rows).map(([grouping, list]) => [grouping, tree(list)]));
    this.any = Object.values(rows).some((list) => list.length > 0);
  }

  // Those of the groups within a group, by key, without ops that are hidden.
  /** @param {string} grouping @param {Level[]} levels @param {Path} path @param {Set<number>} hidden @returns {Map<number, Amount>} */
  within(grouping, levels, path, hidden) {
    /** @type {Group | undefined} */
    let group = this.groupings.get(grouping);
    for (const { key } of path) group = group?.inner.get(key);
    /** @type {Map<number, Amount>} */
    const amounts = new Map();
    const isOp = levels[path.length] === "op";
    const holdsOps = levels.indexOf("op") > path.length;
    for (const [key, { own, inner }] of group?.inner ?? []) {
      const amount = hidden.size > 0 && holdsOps ? together(inner, hidden) : own;
      if (amount && !(isOp && hidden.has(key))) amounts.set(key, amount);
    }
    return amounts;
  }
}

/** @param {Estimate[]} rows */
function tree(rows) {
  /** @type {Group} */
  const root = { own: null, inner: new Map() };
  for (const [path, ns, error, calls, covers] of rows) {
    let group = root;
    for (const key of path) {
      const inner = group.inner.get(key) ?? { own: null, inner: new Map() };
      group.inner.set(key, inner);
      group = inner;
    }
    group.own = { ns, error, calls, covers };
  }
  return root;
}

// Several ops. Whether their errors even out is not known, so they have none together.
/** @param {Map<number, Group>} ops @param {Set<number>} hidden @returns {Amount | null} */
function together(ops, hidden) {
  const shown = [...ops].flatMap(([op, { own }]) => (own && !hidden.has(op) ? [own] : []));
  if (shown.length === 0) return null;
  /** @param {"ns" | "calls" | "covers"} what */
  const sum = (what) => shown.reduce((all, one) => all + one[what], 0);
  return { ns: sum("ns"), error: shown.length === 1 ? shown[0].error : null, calls: sum("calls"), covers: sum("covers") };
}
