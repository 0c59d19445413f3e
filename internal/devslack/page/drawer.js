// The drawer of frames and calls: what the app and the local Slack say to each
// other, as it happens.
import { h, icon, iconButton } from "./dom.js";
import * as api from "./api.js";

const most = 500; // rows that are kept; older ones are still in the server

const kinds = {
  api: { word: "API call", sign: "API" },
  frame_out: { word: "frame to the app", sign: "→ app" },
  frame_in: { word: "frame from the app", sign: "← app" },
};

export class Drawer {
  constructor() {
    this.calls = [];
    this.after = 0;
    this.shown = new Set(["api", "frame_in", "frame_out"]);
    this.filter = "";
    this.open = false;
    this.refresh = api.latest(() => this.fetch());
    this.rows = h("ol", { class: "calls", dataset: { testid: "calls" } });
    this.rows.addEventListener("scroll", () => { this.following = this.rows.scrollHeight - this.rows.scrollTop - this.rows.clientHeight < 40; });
    this.following = true;
    this.empty = h("p", { class: "calls-empty muted" }, "Nothing yet.");
    this.element = h("section", { class: "drawer", "aria-label": "Frames and API calls", hidden: true, dataset: { testid: "drawer" } },
      h("header", { class: "drawer-head" },
        h("h2", {}, "Frames and calls"),
        h("input", { type: "search", class: "field drawer-filter", placeholder: "Filter, e.g. chat.postMessage", "aria-label": "Filter", dataset: { testid: "calls-filter" }, on: { input: (event) => { this.filter = event.target.value.toLowerCase(); this.draw(); } } }),
        h("div", { class: "drawer-kinds" }, Object.entries(kinds).map(([kind, { word, sign }]) => h("label", { class: `kind kind-${kind}`, title: word },
          h("input", { type: "checkbox", checked: true, on: { change: (event) => { this.shown[event.target.checked ? "add" : "delete"](kind); this.draw(); } } }), sign))),
        h("button", { type: "button", class: "button button-small", on: { click: () => { this.calls = []; this.draw(); } } }, "Clear"),
        iconButton("close", "Close frames and calls", { dataset: { testid: "drawer-close" }, on: { click: () => this.toggle(false) } })),
      this.empty, this.rows);
    this.element.addEventListener("keydown", (event) => { if (event.key === "Escape") { event.stopPropagation(); this.toggle(false); } });
  }

  toggle(open = !this.open) {
    this.open = open;
    this.element.hidden = !open;
    this.onToggle?.(open);
    if (open) { this.refresh(); this.element.querySelector("input")?.focus(); }
  }

  // reset forgets everything; the server was restarted.
  reset() { this.after = 0; this.calls = []; this.rows.replaceChildren(); if (this.open) this.refresh(); }

  async fetch() {
    if (!this.open) return;
    const answer = await api.calls(this.after);
    if (!answer.ok || !answer.calls?.length) { this.draw(); return; }
    this.after = Math.max(this.after, ...answer.calls.map((call) => call.seq));
    this.calls = [...this.calls, ...answer.calls].slice(-most);
    this.draw();
  }

  draw() {
    const shown = this.calls.filter((call) => this.shown.has(call.kind) && (!this.filter || `${call.name} ${JSON.stringify(call.request)} ${JSON.stringify(call.response)}`.toLowerCase().includes(this.filter)));
    const old = new Map([...this.rows.children].map((row) => [row.dataset.seq, row]));
    this.rows.replaceChildren(...shown.map((call) => {
      const have = old.get(String(call.seq));
      return have && have.dataset.status === statusOf(call) ? have : callRow(call);
    }));
    this.empty.hidden = shown.length > 0;
    if (this.following) this.rows.scrollTop = this.rows.scrollHeight;
  }
}

const statusOf = (call) => String(call.status ?? "");

function callRow(call) {
  const time = new Date(call.time);
  const failed = call.kind === "api" && (call.status >= 400 || call.response?.ok === false);
  const details = h("details", {}, h("summary", {},
    h("time", { class: "call-time", datetime: call.time }, Number.isNaN(time.getTime()) ? "" : time.toLocaleTimeString(undefined, { hour12: false }) + "." + String(time.getMilliseconds()).padStart(3, "0")),
    h("span", { class: `kind kind-${call.kind}` }, kinds[call.kind]?.sign ?? call.kind),
    h("span", { class: "call-name" }, call.name),
    h("span", { class: ["call-status", failed && "failed"] }, failed && icon("warning"), call.response?.error ?? (call.status ? String(call.status) : ""))));
  // Bodies are big and mostly unread: they are drawn when somebody looks.
  details.addEventListener("toggle", () => {
    if (!details.open || details.children.length > 1) return;
    for (const [word, value] of [[call.kind === "api" ? "Request" : "Frame", call.request], ["Response", call.response]]) {
      if (value === undefined || value === null) continue;
      details.append(h("h3", {}, word), h("pre", { class: "code", tabindex: "0" }, readable(value)));
    }
  });
  return h("li", { class: "call", dataset: { testid: "call", seq: call.seq, kind: call.kind, name: call.name, status: statusOf(call) } }, details);
}

// readable indents JSON, also where it is a string (a form's blocks, a frame).
function readable(value) {
  return JSON.stringify(unfold(value), null, 2);
}

function unfold(value) {
  if (typeof value === "string" && /^\s*[[{]/.test(value)) {
    try { return unfold(JSON.parse(value)); } catch { return value; }
  }
  if (Array.isArray(value)) return value.map(unfold);
  if (value && typeof value === "object") return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, unfold(item)]));
  return value;
}
