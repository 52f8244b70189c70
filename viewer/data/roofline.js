// What each op with its shape reached on a backend, and the roof above: the most bytes and
// operations per time that are given for the backend, or else that it reached in the recording.

// Events of an op and a shape on a backend, with their work and their time; only those whose
// work is known and whose time is that of the work.
/** @param {Recording} recording @param {Span | null} range @param {Question | null} keep */
export function workByShape(recording, range, keep) {
  const { columns, backends, opNames } = recording;
  /** @type {Map<number, ShapeWork>} */
  const found = new Map();
  for (let event = 0; event < recording.count; event += 1) {
    if (recording.isCopy(event) || !recording.hasRate(event)) continue;
    if (keep && !keep(event)) continue;
    if (range && (recording.start(event) >= range.end || recording.end(event) <= range.start)) continue;
    const [moved, flops] = [recording.moved(event), recording.flops(event)];
    if (!(moved > 0)) continue;
    const key = (recording.shape(event) * opNames.length + recording.op(event)) * backends.length + columns.backend[event];
    let one = found.get(key);
    if (!one) found.set(key, (one = { op: recording.op(event), shape: recording.shape(event), backend: columns.backend[event], count: 0, total: 0, moved: 0, flops: 0 }));
    one.count += 1;
    one.total += recording.charged(event);
    one.moved += moved;
    one.flops += flops || 0;
  }
  return [...found.values()].filter(({ total }) => total > 0);
}

// Per backend `{ bandwidth, compute }` in GB/s and GFLOP/s: given by people, measured of the device, or
// the best seen.
/** @param {Recording} recording @param {ShapeWork[]} work @param {Peaks} given */
export function roofs(recording, work, given) {
  const best = recording.backends.map(() => ({ bandwidth: 0, compute: 0 }));
  for (const { backend, total, moved, flops } of work) {
    best[backend].bandwidth = Math.max(best[backend].bandwidth, moved / total);
    best[backend].compute = Math.max(best[backend].compute, flops / total);
  }
  return best.map((seen, at) => {
    const { peak } = recording.backends[at];
    return {
      seen: { bandwidth: peak?.bandwidth ?? seen.bandwidth, compute: peak?.compute ?? seen.compute },
      measured: peak !== null,
      bandwidth: given[at]?.bandwidth ?? peak?.bandwidth ?? seen.bandwidth,
      compute: given[at]?.compute ?? peak?.compute ?? seen.compute,
    };
  });
}
