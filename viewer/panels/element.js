// Elements with text. Names come from model files that strangers made: nothing here or
// elsewhere turns text into markup.

/** @template {keyof HTMLElementTagNameMap} Tag @param {Tag} tag @param {Attributes} [attributes] @param {...(Node | string | null)} children */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(name.slice(2), /** @type {EventListener} */ (value));
    else if (value !== undefined && value !== false) made.setAttribute(name, value === true ? "" : String(value));
  }
  made.append(...children.filter((child) => child !== null && child !== undefined).map((child) => (child instanceof Node ? child : String(child))));
  return made;
}

/** @param {string} text @param {string} label @param {(event: MouseEvent) => void} onclick */
export function button(text, label, onclick) {
  return element("button", { type: "button", title: label, "aria-label": label, onclick }, text);
}
