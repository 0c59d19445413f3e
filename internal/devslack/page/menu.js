// Menus: a button, and a list of choices that it opens. One for all of the page,
// so that every menu is used by the same keys: arrows, Home and End and first
// letters choose, Enter takes, Escape and Tab leave, and the focus goes back to
// the button.
import { h, append } from "./dom.js";

// makeMenu gives the button a menu. items() makes its choices when it opens:
//   { label, detail, icon, value, testid, take }
// take runs when one is chosen. Returns what stands on the page.
export function makeMenu(button, items, name) {
  const list = h("div", { class: "menu", role: "menu", popover: "auto", "aria-label": name });
  button.setAttribute("aria-haspopup", "menu");
  button.setAttribute("aria-expanded", "false");
  const entries = () => [...list.querySelectorAll('[role="menuitem"]')];
  const close = (back = true) => { if (list.matches(":popover-open")) list.hidePopover(); if (back) button.focus(); };
  const open = () => {
    list.replaceChildren();
    append(list, [items().map((one) => h("button", { type: "button", role: "menuitem", tabindex: "-1", class: one.danger && "danger", dataset: { value: one.value, testid: one.testid },
      on: { click: () => { close(); one.take(); } } },
    h("span", { class: "menu-face" }, one.icon, h("span", { class: "menu-words" }, h("span", {}, one.label), one.detail && h("span", { class: "muted small" }, one.detail)))))]);
    list.showPopover();
    place(button, list);
    entries()[0]?.focus();
  };
  button.addEventListener("click", () => (list.matches(":popover-open") ? close() : open()));
  button.addEventListener("keydown", (event) => {
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
    event.preventDefault();
    event.stopPropagation();
    open();
    if (event.key === "ArrowUp") entries().at(-1)?.focus();
  });
  list.addEventListener("toggle", (event) => button.setAttribute("aria-expanded", String(event.newState === "open")));
  list.addEventListener("keydown", (event) => {
    const all = entries();
    const at = all.indexOf(document.activeElement);
    const next = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: -1 }[event.key];
    if (next !== undefined) all.at(next % all.length)?.focus();
    else if (event.key === "Escape") close();
    else if (event.key === "Tab") { close(); return; } // and the focus moves on from the button
    else if (event.key.length === 1 && event.key !== " ") startingWith(all, at, event.key)?.focus();
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  return h("span", { class: "menu-wrap" }, button, list);
}

// startingWith finds the next entry that begins with a letter.
function startingWith(all, at, letter) {
  const turned = [...all.slice(at + 1), ...all.slice(0, at + 1)];
  return turned.find((one) => one.textContent.trim().toLowerCase().startsWith(letter.toLowerCase()));
}

// place puts the list below its button, or above where there is more room.
function place(button, list) {
  const by = button.getBoundingClientRect();
  const size = list.getBoundingClientRect();
  const below = innerHeight - by.bottom;
  const top = below >= size.height + 8 || below >= by.top ? by.bottom + 4 : by.top - size.height - 4;
  const left = by.left + size.width + 8 <= innerWidth ? by.left : by.right - size.width;
  list.style.top = `${Math.max(8, Math.min(top, innerHeight - size.height - 8))}px`;
  list.style.left = `${Math.max(8, left)}px`;
}
