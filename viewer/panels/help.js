// The list of keys.

import { HELP } from "../interact/keyboard.js";
import { button, element } from "./element.js";

export function helpDialog() {
  const rows = HELP.flatMap(([keys, meaning]) => [element("dt", {}, keys), element("dd", {}, meaning)]);
  const dialog = element("dialog", { "aria-label": "Keys" }, element("h2", {}, "Keys and pointer"), element("dl", {}, ...rows), button("Close", "Close", () => dialog.close()));
  return {
    dialog,
    toggle: () => (dialog.open ? dialog.close() : dialog.showModal()),
    // Whether there was something to close.
    close: () => {
      const wasOpen = dialog.open;
      if (wasOpen) dialog.close();
      return wasOpen;
    },
  };
}
