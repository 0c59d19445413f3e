// Messages: how one looks, and a list of them that is kept up to date without
// touching what has not changed.
import { h, icon, iconButton, counterpart } from "./dom.js";
import { makeMenu } from "./menu.js";
import { state, user, app, appName, kindWord, shortcuts, agentThread } from "./state.js";
import { isolated, mrkdwn, messageTime, dayOf, excerpt, fileLink } from "./text.js";
import { renderBlocks } from "./blocks.js";

// hue gives somebody a colour that stays: one of eight, by name.
function hue(name) {
  let sum = 0;
  for (const letter of String(name)) sum = (sum * 25 + letter.codePointAt(0)) >>> 0;
  return (sum >>> 3) % 8;
}

export function avatar(one, size = "") {
  const name = one?.name ?? "?";
  const isBot = one?.kind === "bot";
  const initial = [...name][0]?.toUpperCase() ?? "?";
  const ours = one?.id === app().bot_user_id;
  return h("span", { class: ["avatar", size, ours ? "avatar-ours" : `hue-${hue(name)}`, isBot && "avatar-app"], "aria-hidden": "true" }, ours ? icon("check") : initial);
}

// authorOf finds who wrote a message; bots that name themselves keep that name.
function authorOf(message) {
  const known = user(message.user);
  if (known) return known;
  return { id: message.user ?? message.bot_id ?? "?", name: message.username ?? message.bot_profile?.name ?? message.user ?? "unknown", kind: message.bot_id ? "bot" : "member" };
}

const isBotMessage = (message, author) => Boolean(message.bot_id) || author.kind === "bot";

export function authorLine(message) {
  const author = authorOf(message);
  return [
    h("span", { class: "author", dataset: { testid: "author" } }, isolated(author.name)),
    isBotMessage(message, author) && h("span", { class: "badge" }, "APP"),
    kindWord(author) && author.kind !== "bot" && h("span", { class: "badge badge-kind" }, kindWord(author)),
    messageTime(message.ts),
  ];
}

// follows says whether a message stands under its author's previous one, as a
// continuation without a head of its own.
function follows(message, previous) {
  return Boolean(previous) && !message.ephemeral_to === !previous.ephemeral_to && message.user === previous.user && message.bot_id === previous.bot_id &&
    !previous.reply_count && dayOf(message.ts) === dayOf(previous.ts) && Number(message.ts) - Number(previous.ts) < 300;
}

function body(message, scene) {
  const parts = [];
  if (message.subtype === "assistant_app_thread") return [h("div", { class: "muted" }, "A new chat")];
  if (message.blocks?.length) parts.push(h("div", { class: "blocks" }, renderBlocks(message.blocks, scene)));
  else if (message.text) parts.push(h("div", { class: "text", dataset: { testid: "text" } }, mrkdwn(message.text)));
  for (const attachment of message.attachments ?? []) parts.push(attached(attachment, scene));
  for (const file of message.files ?? []) parts.push(attachedFile(file));
  // Slack doesn't call a bot's message edited when its blocks are replaced.
  if (message.edited && !(message.bot_id && message.blocks?.length)) parts.push(h("span", { class: "edited", dataset: { testid: "edited" } }, "(edited)"));
  if (message.reactions?.length) parts.push(h("div", { class: "reactions" }, message.reactions.map((one) => h("span", { class: "reaction", role: "img", title: reactors(one), "aria-label": reactors(one), dataset: { testid: "reaction", name: one.name } }, mrkdwn(`:${one.name}:`), h("span", { class: "reaction-count" }, String(one.count ?? one.users?.length ?? 1))))));
  return parts;
}

const reactors = (reaction) => `${(reaction.users ?? []).map((id) => user(id)?.name ?? id).join(", ")} reacted with :${reaction.name}:`;

const size = (bytes) => (bytes < 1024 ? `${bytes} bytes` : bytes < 1024 * 1024 ? `${Math.round(bytes / 1024)} kB` : `${(bytes / 1024 / 1024).toFixed(1)} MB`);

function attachedFile(file) {
  const name = file.title || file.name || file.id;
  const picture = /^image\/(png|jpeg|gif|webp)$/.test(file.mimetype ?? "");
  return h("figure", { class: "attachment-file", dataset: { testid: "file" } },
    h("div", { class: "file-face" }, icon(picture ? "image" : "file"), h("span", { class: "file-words" }, fileLink(file.url_private, name), h("span", { class: "muted small" }, `${file.pretty_type || file.mimetype || ""} · ${size(file.size ?? 0)}`))),
    picture && file.url_private && h("img", { class: "picture", src: new URL(file.url_private, location.href).pathname, alt: file.alt_txt ?? name, loading: "lazy" }));
}

function attached(attachment, scene) {
  return h("div", { class: "attached" }, attachment.blocks ? renderBlocks(attachment.blocks, scene) : [
    attachment.pretext && h("div", { class: "text" }, mrkdwn(attachment.pretext)),
    attachment.title && h("b", {}, isolated(attachment.title)),
    h("div", { class: "text" }, mrkdwn(attachment.text ?? attachment.fallback ?? "")),
  ]);
}

const repliers = (message) => (message.reply_users ?? []).map(user).filter(Boolean);

function replyBar(message, { onThread, waiting }) {
  if (!message.reply_count) return null;
  const word = message.reply_count === 1 ? "1 reply" : `${message.reply_count} replies`;
  return h("button", { type: "button", class: "reply-bar", dataset: { testid: "replies" }, on: { click: onThread } },
    h("span", { class: "reply-avatars" }, repliers(message).slice(0, 4).map((one) => avatar(one, "avatar-small"))),
    h("span", { class: "reply-count" }, word),
    agentThread(state.channel, message.ts)?.title && h("span", { class: "reply-title" }, isolated(agentThread(state.channel, message.ts).title)),
    waiting && h("span", { class: "reply-waiting", dataset: { testid: "waiting" } }, icon("hand"), "Waiting for an answer"),
    message.latest_reply && h("span", { class: ["muted small", waiting && "wide-only"] }, "Last reply ", messageTime(message.latest_reply)),
    icon("chevron", "sideways"));
}

// messageNode draws one message. place: { compact, inThread, onThread, waiting, scene }.
function messageNode(message, place) {
  const author = authorOf(message);
  const ephemeral = Boolean(message.ephemeral_to);
  const head = place.compact ? null : h("div", { class: "message-head" }, authorLine(message));
  return h("article", {
    class: ["message", place.compact && "compact", ephemeral && "ephemeral", state.thread === message.ts && !place.inThread && "open-thread"],
    "aria-label": `${ephemeral ? "Only visible to you. " : ""}${author.name}: ${excerpt(message.text, 120)}`,
    tabindex: "-1",
    dataset: { testid: "message", ts: message.ts, user: message.user, ephemeral: ephemeral ? "true" : undefined, threadTs: message.thread_ts },
  },
  h("div", { class: "gutter" }, place.compact ? messageTime(message.ts, true) : avatar(author)),
  h("div", { class: "message-main" },
    ephemeral && h("div", { class: "only-you" }, icon("lock"), "Only visible to you"),
    head,
    body(message, place.scene),
    !place.inThread && !ephemeral && replyBar(message, place)),
  messageTools(message, place, ephemeral));
}

// messageTools is what can be done with a message: answer it, hand it to the
// app, change it when it is one's own.
function messageTools(message, place, ephemeral) {
  if (ephemeral || message.subtype === "tombstone") return null;
  const more = iconButton("more", "More actions", { dataset: { testid: "message-menu" } });
  return h("div", { class: "message-tools" },
    !place.inThread && iconButton("thread", "Reply in thread", { dataset: { testid: "reply" }, on: { click: place.onThread } }),
    makeMenu(more, () => messageMenu(message, place), "More actions"));
}

function messageMenu(message, place) {
  const mine = message.user === state.me && ["", "file_share"].includes(message.subtype ?? "");
  return [
    ...shortcuts().map((one) => ({ label: isolated(one.name), detail: isolated(appName()), icon: icon("bolt"), value: one.callback_id, testid: "shortcut", take: () => place.shortcut(one) })),
    { label: "Copy link", icon: icon("copy"), testid: "copy-link", take: place.copyLink },
    mine && message.text && { label: "Edit message", icon: icon("edit"), testid: "edit-message", take: place.edit },
    mine && { label: "Delete message", icon: icon("trash"), testid: "delete-message", danger: true, take: place.remove },
  ].filter(Boolean);
}

// A MessageList keeps a scrolling element equal to a list of messages. Nodes
// of messages that did not change are left alone: a spinner goes on turning, a
// half-made choice and the focus stay where they are.
export class MessageList {
  // scenes(message) says what the elements of a message do.
  constructor(element, { scenes, edit, remove, shortcut, copyLink, onThread, inThread = false }) {
    Object.assign(this, { element, scenes, edit, remove, shortcut, copyLink, onThread, inThread });
    element.addEventListener("keydown", (event) => this.walk(event));
    this.nodes = new Map(); // key → { node, signature }
    // Who reads the end goes on reading it, whatever grows or takes away room:
    // a message that is redrawn or unfolded, a banner, a phone's keyboard.
    this.atEnd = true;
    this.sizes = new ResizeObserver(() => this.settle());
    this.sizes.observe(element);
    element.addEventListener("scroll", () => this.scrolled(), { passive: true });
  }

  // walk moves the focus from message to message by the arrow keys, when it is
  // on one or on the list. Tab goes on into what the message offers.
  walk(event) {
    if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const on = event.target === this.element || event.target.matches('[data-testid="message"]');
    const all = [...this.element.querySelectorAll('[data-testid="message"]')];
    const at = all.indexOf(event.target);
    const next = { ArrowUp: at < 0 ? all.length - 1 : at - 1, ArrowDown: at < 0 ? all.length - 1 : at + 1, Home: 0, End: all.length - 1 }[event.key];
    if (!on || next === undefined || !all.length) return;
    event.preventDefault();
    all[Math.max(0, Math.min(next, all.length - 1))].focus();
  }

  // scrolled notes where a person went. A browser also scrolls by itself when
  // sizes change; that is not for it to decide, settle follows.
  scrolled() {
    if (this.size() !== this.settled) return;
    this.atEnd = this.element.scrollHeight - this.element.scrollTop - this.element.clientHeight < 80;
  }

  size() { return `${this.element.scrollHeight} ${this.element.clientHeight}`; }

  settle() {
    if (this.atEnd) this.element.scrollTop = this.element.scrollHeight;
    this.settled = this.size();
  }

  clear() { this.nodes.clear(); this.element.replaceChildren(); this.atEnd = true; }

  // show brings the list up to date; before and after are nodes of the page,
  // waiting the threads in which somebody is asked.
  show(messages, { before = [], after = [], afterFirst = null, waiting = new Set() } = {}) {
    const wanted = [...before];
    const seen = new Set();
    messages.forEach((message, index) => {
      const previous = messages[index - 1];
      const newDay = !previous || dayOf(previous.ts) !== dayOf(message.ts);
      if (newDay && !this.inThread) wanted.push(this.kept(`day ${dayOf(message.ts)}`, "", seen, () => h("div", { class: "day", role: "separator" }, h("span", {}, dayOf(message.ts)))));
      const compact = !newDay && follows(message, previous) && !(this.inThread && index === 1);
      const key = `${message.ts} ${message.ephemeral_to ?? ""}`;
      const signature = JSON.stringify([message, compact, state.me, state.thread === message.ts, waiting.has(message.ts), agentThread(state.channel, message.ts)?.title]);
      wanted.push(this.kept(key, signature, seen, () => messageNode(message, {
        compact, inThread: this.inThread, waiting: waiting.has(message.ts), scene: this.scenes(message), edit: () => this.edit(message), remove: () => this.remove(message), shortcut: (one) => this.shortcut(message, one), copyLink: () => this.copyLink(message), onThread: this.onThread && (() => this.onThread(message.thread_ts ?? message.ts)) })));
      if (index === 0 && afterFirst) wanted.push(afterFirst);
    });
    for (const key of this.nodes.keys()) if (!seen.has(key)) { this.sizes.unobserve(this.nodes.get(key).node); this.nodes.delete(key); }
    arrange(this.element, [...wanted, ...after]);
    this.settle();
  }

  kept(key, signature, seen, draw) {
    seen.add(key);
    const entry = this.nodes.get(key);
    if (entry?.signature === signature) return entry.node;
    const node = draw();
    this.sizes.observe(node);
    if (entry) { this.sizes.unobserve(entry.node); keepFocus(entry.node, node); }
    this.nodes.set(key, { node, signature });
    return node;
  }
}

// arrange makes the children of an element be these nodes, moving as few as it
// can.
function arrange(element, nodes) {
  const wanted = new Set(nodes);
  for (const child of [...element.childNodes]) if (!wanted.has(child)) child.remove();
  nodes.forEach((node, index) => { if (element.childNodes[index] !== node) element.insertBefore(node, element.childNodes[index] ?? null); });
}

// keepFocus moves the focus to the same element of a redrawn message. When it
// is gone (a button of a card that ended), the message itself takes it, so that
// a keyboard user is not thrown back to the top of the page.
function keepFocus(old, fresh) {
  if (!old.contains(document.activeElement)) return;
  const same = old === document.activeElement ? fresh : counterpart(old, document.activeElement)(fresh);
  queueMicrotask(() => (same ?? fresh).focus({ preventScroll: true }));
}

export function threadDivider(count) {
  return h("div", { class: "thread-divider" }, h("span", {}, count === 1 ? "1 reply" : `${count} replies`));
}
