// Keys, by their place on the keyboard where letters are meant (W above S on any layout), by
// their sign where signs are.

const ZOOM = 0.7;
const PAN = 0.2;

export const HELP = [
  ["W / S", "zoom in / out"], ["A / D", "move left / right"], ["wheel", "zoom at the pointer"],
  ["shift + wheel", "move sideways"], ["drag", "move"], ["shift + drag, or drag on the ruler", "select a range"],
  ["click", "select an event, a phase, a backend (collapse) or a lane's name (pin)"],
  ["F, double click", "fit the selection, again: fit all"], [". / ,", "next / previous event in the lane"],
  ["/", "search"], ["Enter / Shift + Enter", "next / previous match"], ["Esc", "clear search, range, selection"], ["?", "this list"],
];

/** @param {Actions} actions @param {{ openSearch: () => void, toggleHelp: () => void, closeHelp: () => boolean }} panels */
export function handleKeys(actions, { openSearch, toggleHelp, closeHelp }) {
  /** @type {{ [code: string]: () => void }} */
  const byCode = {
    KeyW: () => actions.zoom(ZOOM, 0.5),
    KeyS: () => actions.zoom(1 / ZOOM, 0.5),
    KeyA: () => actions.pan(-PAN),
    KeyD: () => actions.pan(PAN),
    KeyF: () => actions.focus(),
    Escape: () => closeHelp() || actions.clear(),
  };
  /** @type {{ [sign: string]: () => void }} */
  const bySign = {
    ".": () => actions.step(1),
    ",": () => actions.step(-1),
    "/": openSearch,
    "?": toggleHelp,
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    const action = bySign[event.key] ?? byCode[event.code];
    if (!action) return;
    event.preventDefault();
    action();
  });
}
