// Colours of events. Ops have the same colour in every file: frequent ones by name, others
// by a hash of theirs. The palette is Paul Tol's, which colour-blind people can tell apart.

import { roofs, workByShape } from "../data/roofline.js";

const PALETTE = [
  "#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#ee8866",
  "#44bb99", "#bbcc33", "#99ddff", "#ffaabb", "#aaaa00", "#882255", "#999933",
];

// For ops without a colour of their own: paler, so that they are not taken for one of those.
const OTHERS = [
  "#c49a6c", "#b8a1d9", "#8fbf9f", "#d9a0a0", "#8aa9c7", "#c9c27a", "#d6a5c9", "#7fb5b5", "#b3b3b3", "#a8c686",
];

/** @type {{ [op: string]: string }} */
const KNOWN = {
  MUL_MAT: "#4477aa", MUL_MAT_ID: "#7a68c7", FLASH_ATTN_EXT: "#ee6677", SOFT_MAX: "#cc6677",
  RMS_NORM: "#ccbb44", NORM: "#ccbb44", ADD: "#66ccee", MUL: "#44bb99", ROPE: "#aa3377",
  GLU: "#228833", UNARY: "#117733", GET_ROWS: "#ee8866", SET_ROWS: "#ffaabb", CPY: "#bbcc33",
  CONT: "#aaaa00", SCALE: "#99ddff", copy_H2D: "#e0a030", copy_D2H: "#b5651d", copy_D2D: "#8c6d31",
};

/** @type {Map<string, string>} */
const TEXTS = new Map();

// Black or white, whichever has more contrast to a colour.
/** @param {string} colour */
export function textOn(colour) {
  const known = TEXTS.get(colour);
  if (known) return known;
  const [red, green, blue] = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16) / 255).map((part) => (part <= 0.04 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
  const text = 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 ? "#000" : "#fff";
  TEXTS.set(colour, text);
  return text;
}

// From slow to fast: Tol's scheme for values that grow.
const SCALE = ["#e8601c", "#f6c141", "#cae0ab", "#7bafde", "#1965b0"];
const UNKNOWN = "#999999";

/** @param {string} name */
export function colourOfName(name) {
  return KNOWN[name] ?? OTHERS[hash(name) % OTHERS.length];
}

/** @param {number} backend */
export function backendColour(backend) {
  return PALETTE[backend % PALETTE.length];
}

/** @type {{ [spent: string]: string }} */
const SPENT = {
  launching: "#d98c3f", first_use: "#b5651d", compiling: "#b3a1c9", scheduling: "#8f7fb0", building_graphs: "#a99bc4",
  unequal_threads: "#cc6677", barriers: "#b35a6b", waiting_for_device: "#9aa3ad", program: "#7d8791", between_runs: "#7d8791",
  other_runs: "#c2b280", unseen_run: "#bbbbbb",
};

// Of what a phase's time went to: computing has the backend's colour, paler for its later parts.
/** @param {string} spent @param {number | null} backend @param {number} before */
export function spentColour(spent, backend, before) {
  if (spent === "computing" && backend !== null) return `color-mix(in srgb, ${backendColour(backend)} ${Math.max(100 - 17 * before, 32)}%, #fff)`;
  return SPENT[spent] ?? (spent.startsWith("copying") ? "#e0b050" : UNKNOWN);
}

// What the colours mean where they are not those of ops: `{ colour, text }` each.
/** @param {Recording} recording @param {string} by */
export function colourKey(recording, by) {
  switch (by) {
    case "backend":
      return recording.backends.map(({ label }, at) => ({ colour: backendColour(at), text: label }));
    case "efficiency": {
      const step = 100 / SCALE.length;
      return [...SCALE.map((colour, at) => ({ colour, text: `${at * step}–${(at + 1) * step}%` })), { colour: UNKNOWN, text: "unknown" }];
    }
    case "layer":
      return [{ colour: UNKNOWN, text: "no layer" }];
    default:
      return [];
  }
}

// A function from an event to its colour.
/** @param {Recording} recording @param {string} by @param {Peaks} peaks @returns {(event: number) => string} */
export function colouring(recording, by, peaks) {
  const { columns } = recording;
  switch (by) {
    case "backend": {
      const colours = recording.backends.map((_, at) => backendColour(at));
      return (event) => colours[columns.backend[event]];
    }
    case "layer":
      return (event) => (columns.layer[event] === 0 ? UNKNOWN : PALETTE[(columns.layer[event] - 1) % PALETTE.length]);
    case "efficiency":
      return efficiency(recording, roofs(recording, workByShape(recording, null, null), peaks));
    default: {
      const colours = recording.opNames.map(colourOfName);
      return (event) => colours[recording.op(event)];
    }
  }
}

// How close an event is to the roof of its backend: by bandwidth or by computing, whichever is closer.
/** @param {Recording} recording @param {Roof[]} roofs @returns {(event: number) => string} */
function efficiency(recording, roofs) {
  return (event) => {
    const roof = roofs[recording.columns.backend[event]];
    /** @param {number} amount @param {number} most */
    const reached = (amount, most) => (most > 0 ? amount / recording.charged(event) / most : 0);
    const share = Math.max(reached(recording.moved(event), roof.bandwidth), reached(recording.flops(event) || 0, roof.compute));
    if (!recording.hasRate(event) || Number.isNaN(share)) return UNKNOWN;
    return SCALE[Math.min(Math.floor(share * SCALE.length), SCALE.length - 1)];
  };
}

// Phases: warm-up, prompt, generation, both at once, encoding, graphs without tokens, drafts.
export const PHASE_COLOURS = ["#bbbbbb", "#ddaa33", "#6699cc", "#aa7799", "#55aa88", "#999999", "#99bbdd"];

// FNV-1a.
/** @param {string} text */
function hash(text) {
  let value = 0x811c9dc5;
  for (let at = 0; at < text.length; at += 1) value = Math.imul(value ^ text.charCodeAt(at), 0x01000193);
  return value >>> 0;
}
