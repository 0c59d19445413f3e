// Modals: the top of the stack of views that the app has opened for the user.
import { h, icon, iconButton, spinner, replace, announce, counterpart, whereFocusIs } from "./dom.js";
import { state, appName } from "./state.js";
import { plainText, unescape } from "./text.js";
import { renderBlocks, complaint, needsValue } from "./blocks.js";
import * as api from "./api.js";

const drafts = new Map(); // view id → what was entered
const errors = new Map(); // view id → block_id → sentence

const modals = () => state.views.filter((view) => view.type === "modal");

// topmost is the view that no other one came from.
function topmost(views) {
  const below = new Set(views.map((view) => view.previous_view_id).filter(Boolean));
  return views.findLast((view) => !below.has(view.id)) ?? views.at(-1);
}

// focusIn remembers which element of a view has the focus, and where in its text.
function focusIn(element) {
  const was = document.activeElement;
  if (!element.contains(was)) return null;
  const like = counterpart(element, was.closest("[data-testid]"));
  const [start, end] = [was.selectionStart, was.selectionEnd];
  return (fresh) => {
    const same = like(fresh);
    const target = same?.localName === "fieldset" ? [...same.querySelectorAll("input")].find((one) => one.value === was.value) : same;
    if (!target) return;
    target.focus();
    if (typeof start === "number" && ["text", "textarea"].includes(target.type)) target.setSelectionRange(start, end);
  };
}

export class Modals {
  constructor(refresh) {
    this.refresh = refresh;
    this.element = h("dialog", { class: "dialog modal", dataset: { testid: "modal" } });
    // Escape asks the app first, as the X does: it may want to know.
    this.element.addEventListener("cancel", (event) => { event.preventDefault(); this.close(); });
    document.getElementById("overlays").append(this.element);
    this.shown = "";
  }

  // show brings the dialog in line with state.views.
  show() {
    const views = modals();
    const view = topmost(views);
    if (!view) {
      const was = this.element.open;
      if (was) this.element.close();
      if (was) this.back?.();
      this.view = null;
      this.shown = "";
      drafts.clear();
      errors.clear();
      return;
    }
    for (const id of drafts.keys()) if (!views.some((one) => one.id === id)) { drafts.delete(id); errors.delete(id); }
    const signature = JSON.stringify([view, views.length, errors.get(view.id)]);
    if (signature !== this.shown) {
      const same = this.view?.id === view.id;
      const scroll = same ? this.element.querySelector(".dialog-body")?.scrollTop : 0;
      const focused = same ? focusIn(this.element) : null;
      this.shown = signature;
      this.view = view;
      if (!this.element.open) this.back = whereFocusIs();
      this.draw(views.length);
      if (scroll) this.element.querySelector(".dialog-body").scrollTop = scroll;
      if (focused && !errors.get(view.id)) focused(this.element);
    }
    if (!this.element.open) {
      this.element.showModal();
      this.first()?.focus();
      announce(`${appName()} opened a window: ${unescape(view.title?.text)}`);
    }
  }

  draw(depth) {
    const view = this.view;
    if (!drafts.has(view.id)) drafts.set(view.id, new Map());
    const draft = drafts.get(view.id);
    const scene = {
      name: view.id, draft, errors: errors.get(view.id),
      act: async ({ blockID, element, value }) => {
        const answer = await api.actInView(view.id, { user: state.me, block_id: blockID, action_id: element.action_id, ...(needsValue(element) && { value }) });
        this.refresh();
        return answer;
      },
    };
    this.element.dataset.viewId = view.id;
    this.element.setAttribute("aria-label", unescape(view.title?.text) || "Window");
    this.note = h("div", { class: "modal-note", role: "alert", hidden: true });
    this.submitButton = view.submit && h("button", { type: "submit", class: "button button-primary", dataset: { testid: "modal-submit" } }, h("span", { class: "button-face" }, plainText(view.submit)), h("span", { class: "button-mark" }));
    replace(this.element, h("form", { novalidate: true, on: { submit: (event) => { event.preventDefault(); this.submit(); } } },
      h("header", { class: "dialog-head" },
        depth > 1 && iconButton("back", "Back", { dataset: { testid: "modal-back" }, on: { click: () => this.close() } }),
        h("h2", { dataset: { testid: "modal-title" } }, plainText(view.title)),
        iconButton("close", "Close", { dataset: { testid: "modal-close" }, on: { click: () => this.close() } })),
      h("div", { class: "dialog-body", tabindex: "-1" }, this.note, renderBlocks(view.blocks, scene)),
      h("footer", { class: "dialog-foot" },
        h("button", { type: "button", class: "button", dataset: { testid: "modal-cancel" }, on: { click: () => this.close() } }, view.close ? plainText(view.close) : view.submit ? "Cancel" : "Close"),
        this.submitButton)));
    this.first()?.focus();
  }

  // first is where somebody begins: at what is wrong, else where something is to be entered, else at the top. A button
  // isn't one to begin at: the first one may stand below pages of text that nobody would have read.
  first() {
    const find = (selector) => this.element.querySelector(selector);
    const wrong = find("[aria-invalid]");
    if (wrong?.localName === "fieldset") return wrong.querySelector("input");
    return wrong ?? find("[autofocus]") ?? find(".dialog-body :is(.field, select, .tick input)") ?? find(".dialog-body");
  }

  // values are what was entered, by block and action.
  values() {
    const values = {};
    for (const block of this.view.blocks ?? []) {
      for (const element of [block.element, block.accessory, ...(block.elements ?? [])]) {
        if (!element?.action_id) continue;
        const value = drafts.get(this.view.id)?.get(`${block.block_id}/${element.action_id}`);
        if (value !== undefined && value !== null && value !== "") (values[block.block_id] ??= {})[element.action_id] = value;
      }
    }
    return values;
  }

  // missing names the required inputs that are empty; Slack doesn't send those.
  missing(values) {
    const missing = {};
    for (const block of this.view.blocks ?? []) {
      if (block.type !== "input" || block.optional) continue;
      const value = values[block.block_id]?.[block.element.action_id];
      if (value === undefined || (Array.isArray(value) && value.length === 0)) missing[block.block_id] = "Please complete this required field.";
    }
    return missing;
  }

  async submit() {
    const view = this.view;
    const values = this.values();
    const missing = this.missing(values);
    if (Object.keys(missing).length) return this.complain(view, missing);
    const mark = this.submitButton?.querySelector(".button-mark");
    mark?.replaceChildren(spinner("Waiting for the app"));
    this.submitButton?.setAttribute("aria-busy", "true");
    const answer = await api.submitView(view.id, { user: state.me, values });
    mark?.replaceChildren();
    this.submitButton?.removeAttribute("aria-busy");
    if (answer.response_action === "errors" && Object.keys(answer.errors).length) return this.complain(view, answer.errors);
    const sentence = complaint(answer);
    if (sentence) {
      this.note.replaceChildren(icon("warning"), `We had some trouble connecting. Try again? (${sentence})`);
      this.note.hidden = false;
      return;
    }
    errors.delete(view.id);
    this.refresh();
  }

  complain(view, sentences) {
    errors.set(view.id, sentences);
    this.show();
  }

  async close() {
    const view = this.view;
    if (!view) return;
    const answer = await api.closeView(view.id, { user: state.me });
    // A view that the server no longer knows is closed already.
    if (!answer.ok) state.views = state.views.filter((one) => one.id !== view.id);
    await this.refresh();
  }
}
