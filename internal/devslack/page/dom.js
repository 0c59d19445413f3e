// Building DOM nodes. Nothing here, and nothing that uses it, turns a string
// into markup: children that are strings become text nodes.

// h makes an element. Attributes: class, dataset, on (listeners), style (custom
// properties), and otherwise properties or attributes by name; null, undefined
// and false leave an attribute out.
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "class") element.className = Array.isArray(value) ? value.filter(Boolean).join(" ") : value;
    else if (name === "dataset") for (const [key, datum] of Object.entries(value)) { if (datum !== undefined && datum !== null) element.dataset[key] = datum; }
    else if (name === "on") for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    else if (name === "style") for (const [key, item] of Object.entries(value)) element.style.setProperty(key, item);
    else if (value === true) element.setAttribute(name, "");
    else element.setAttribute(name, value);
  }
  append(element, children);
  return element;
}

export function append(parent, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    parent.append(child instanceof Node ? child : String(child));
  }
  return parent;
}

export function replace(parent, ...children) {
  parent.replaceChildren();
  return append(parent, children);
}

// Icons are paths on a 20 by 20 grid, drawn in the colour of the text.
const paths = {
  activity: "M2.5 10h3.2l2.4-6 3.8 12 2.4-6h3.2",
  back: "M12.5 4.5 7 10l5.5 5.5",
  bolt: "M11 2.5 4.5 11.5H9l-.8 6 6.5-9h-4.5z",
  check: "M4.5 10.5 8.2 14.2 15.5 6.3",
  chevron: "M5.5 7.5 10 12l4.5-4.5",
  close: "M5 5l10 10M15 5 5 15",
  copy: "M7 7h8.5v9H7zM4.5 13V4h8.5",
  edit: "M4 16l.8-3.2L13.5 4l2.5 2.5-8.7 8.7zM11.5 6l2.5 2.5",
  error: "M10 5.5v5.5M10 14v.2",
  file: "M5.5 2.5h6l3.5 3.5v11.5h-9.5zM11.5 2.5V6H15",
  hand: "M6.500 10.500V5.200a1.100 1.100 0 0 1 2.200 0V9.500M8.700 9V3.900a1.100 1.100 0 0 1 2.200 0V9M10.900 9V4.700a1.100 1.100 0 0 1 2.200 0V10M13.100 7.200a1.100 1.100 0 0 1 2.200 0V12c0 3-1.800 5-4.600 5-2.300 0-3.400-.9-4.500-2.900L4.300 11.200c-.5-1 .9-1.800 1.600-.9l.8 1",
  hash: "M7.5 3.5 6 16.5M14 3.5l-1.5 13M3.5 7.500h13.500M3 12.500h13.5",
  home: "M3.5 9.5 10 4l6.5 5.500V16.500h-4.500v-4h-4v4H3.500z",
  image: "M3.5 4.500h13v11h-13zM3.5 13l3.5-3.5 3 3 2.5-2.5 4 3.5",
  lock: "M5 9h10v7.500H5zM7 9V6.500a3 3 0 0 1 6 0V9",
  more: "M5 10v.01M10 10v.01M15 10v.01",
  people: "M7.5 9.500a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5zM2.5 16c0-3 2-4.5 5-4.500s5 1.5 5 4.500M13 5a2.5 2.5 0 0 1 0 4.500M14.5 11.700c2 .5 3 2 3 4.3",
  send: "M3.5 3.8 17 10 3.5 16.200l1.8-5.200L11 10 5.3 9z",
  sparkle: "M10 3l1.6 4.400L16 9l-4.4 1.600L10 15l-1.6-4.400L4 9l4.4-1.600zM16 14v3M14.5 15.500h3",
  thread: "M4 4.500h12v8.500H9.500L6 16v-3H4z",
  attach: "M14.5 9.200 9.3 14.400a3 3 0 0 1-4.300-4.300l6-6a2 2 0 0 1 2.900 2.900l-5.700 5.700a1 1 0 0 1-1.500-1.500L11.500 6.500",
  keyboard: "M2.5 5.500h15v9h-15zM5.500 8.500v.01M8.500 8.500v.01M11.500 8.500v.01M14.500 8.500v.01M6.500 11.500h7",
  plus: "M10 4.500v11M4.5 10h11",
  stop: "M6 6h8v8H6z",
  trash: "M4.5 6h11M8 6V4h4v2M6 6l.7 10.500h6.600L14 6",
  warning: "M10 3.5 17.5 16.500h-15zM10 8v4M10 14.200v.1",
};

// redraw replaces the children of an element, but only when what they are made
// of has changed: an element that is replaced between the press and the release
// of a mouse button never gets its click.
const drawn = new WeakMap();
export function redraw(parent, made, build) {
  const signature = JSON.stringify(made);
  if (drawn.get(parent) === signature) return;
  drawn.set(parent, signature);
  replace(parent, build());
}

export function icon(name, extra = "") {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 20 20");
  svg.setAttribute("class", `icon icon-${name} ${extra}`.trim());
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  path.setAttribute("d", paths[name]);
  svg.append(path);
  return svg;
}

export function spinner(label) {
  return h("span", { class: "spinner", role: "img", "aria-label": label ?? "Waiting" });
}

// iconButton is a button with a picture and a name for those who can't see it.
export function iconButton(name, label, attributes = {}) {
  return h("button", { type: "button", class: "icon-button", "aria-label": label, title: label, ...attributes }, icon(name));
}

// announce tells a screen reader what just happened.
export function announce(text) {
  document.getElementById("status").textContent = text;
}

// counterpart remembers an element within what is about to be redrawn, and
// returns what finds its like afterwards: with the same action in the same block,
// else (a redrawn block may have a new id) in the same place among those with
// that action. undefined: it is gone.
export function counterpart(root, element) {
  const { actionId, blockId, testid } = element?.closest?.("[data-testid]")?.dataset ?? {};
  const alike = (within) => [...within.querySelectorAll("[data-testid]")].filter((one) => testid && one.dataset.testid === testid && one.dataset.actionId === actionId);
  const at = root ? alike(root).indexOf(element) : -1;
  return (fresh) => {
    const all = alike(fresh);
    return all.find((one) => one.dataset.blockId === blockId) ?? all[at];
  };
}

// whereFocusIs remembers where the focus is, and returns what brings it back:
// to the same element, or to what stands in its place when it was redrawn, else
// to the message that it stood in.
export function whereFocusIs() {
  const was = document.activeElement;
  const message = was?.closest?.("[data-ts]")?.dataset.ts;
  const like = counterpart(was?.closest?.("[data-ts], .home-view"), was);
  return () => {
    if (was?.isConnected && was !== document.body) return was.focus();
    const within = message ? [...document.querySelectorAll(`[data-ts="${CSS.escape(message)}"]`)].find((one) => one.checkVisibility()) : document.querySelector(".home-view");
    const target = (within && like(within)) ?? within ?? document.querySelector("[data-testid=composer-input]");
    if (target === within && within) within.tabIndex = -1;
    return target?.focus({ preventScroll: true });
  };
}

let dialogs = 0; // how many had to be given a name

// dialog shows a modal <dialog> and resolves when it is closed. The browser
// keeps the focus in it and gives it back afterwards.
export function dialog(className, build) {
  return new Promise((resolve) => {
    let result;
    const element = h("dialog", { class: `dialog ${className}` });
    const close = (value) => { result = value; element.close(); };
    append(element, [build(close)]);
    const title = element.querySelector("h2");
    if (title) {
      title.id ||= `dialog-${++dialogs}`;
      element.setAttribute("aria-labelledby", title.id);
    }
    const back = whereFocusIs();
    element.addEventListener("close", () => { element.remove(); back(); resolve(result); });
    element.addEventListener("keydown", (event) => { if (event.key === "Escape") event.stopPropagation(); });
    document.getElementById("overlays").append(element);
    element.showModal();
  });
}
