// The page: a small Slack client for a person who plays several users.
//
// Everything on it is read from the control plane; events only say what to read
// again. So the page can lag, but what it shows is what the server holds, and a
// reconnect is a fresh reading.
import { h, icon, iconButton, replace, redraw, announce, dialog, whereFocusIs } from "./dom.js";
import { makeMenu } from "./menu.js";
import { state, user, channel, app, bot, appName, players, myChannels, isMember, isAppDM, isAgent, agentThread, hasBot, asks, partner, unreadOf, waitingFor, channelName, channelMark, channelSign, kindWord } from "./state.js";
import { isolated } from "./text.js";
import { avatar, MessageList, threadDivider } from "./messages.js";
import { makeComposer, encoded, resolveMentions, asTyped, sentences, sentenceText, sentenceFace } from "./composer.js";
import { renderBlocks, needsValue, confirmed, complaint } from "./blocks.js";
import { Modals } from "./modal.js";
import { Drawer } from "./drawer.js";
import { showDetails } from "./details.js";
import * as api from "./api.js";

const root = document.getElementById("app");
const part = {}; // the elements that are kept, by name
const actionDrafts = new Map(); // "channel ts" → draft of the message's elements

// ——— Reading ———

const readMessages = api.latest(async (id) => {
  const answer = await api.messages(id);
  if (!answer.ok) return;
  state.messages.set(id, answer.messages ?? []);
  if (id !== state.channel) return;
  drawChannel();
  followTried();
  lookAt();
});

const readThread = api.latest(async (key) => {
  const [id, ts] = key.split(" ");
  const answer = await api.messages(id, ts);
  if (!answer.ok) return;
  state.replies.set(ts, answer.messages ?? []);
  if (ts !== state.thread) return;
  drawThread();
  lookAt();
});

// readAgents reads what the app says beside its messages.
const readAgents = api.latest(async () => {
  const me = state.me;
  const answer = await api.agentThreads(me);
  if (!answer.ok || me !== state.me) return;
  state.agents = new Map((answer.threads ?? []).map((one) => [`${one.channel} ${one.thread_ts}`, one]));
  for (const one of answer.threads ?? []) if (one.status) state.typing.set(`${one.channel} ${one.thread_ts}`, one.status);
  drawChannel();
  drawThread();
  drawPrompts();
});

const readViews = api.latest(async () => {
  const me = state.me;
  const answer = await api.views(me);
  if (!answer.ok || me !== state.me) return;
  state.views = answer.views ?? [];
  modals.show();
  if (state.tab === "home") drawHome();
});

const readWorkspace = api.latest(async () => {
  const [answer, sockets] = await Promise.all([api.workspace(), api.sockets()]);
  if (!answer.ok || !answer.users) return;
  state.sockets = sockets.connections ?? state.sockets;
  state.workspace = answer;
  state.usergroups = answer.usergroups ?? [];
  if (!user(state.me)) state.me = remember("me") && players().some((one) => one.id === remember("me")) ? remember("me") : players()[0]?.id;
  if (!channel(state.channel) || !myChannels().includes(channel(state.channel))) state.channel = myChannels()[0]?.id ?? null;
  drawAll();
});

// remember keeps a choice for the next visit; a browser that forbids it just
// starts afresh.
function remember(key, value) {
  try {
    if (value !== undefined) sessionStorage.setItem(`devslack.${key}`, value);
    return sessionStorage.getItem(`devslack.${key}`);
  } catch { return null; }
}

async function readAll() {
  await readWorkspace();
  if (state.channel) await Promise.all([readMessages(state.channel), state.thread && readThread(`${state.channel} ${state.thread}`), readViews(), readAgents()]);
}

// ——— Events ———

function onEvent(event) {
  switch (event.type) {
    case "message": case "message_changed": case "message_deleted": case "ephemeral":
      onMessage(event);
      break;
    case "workspace":
      readWorkspace().then(() => readAgents());
      break;
    case "agent":
      readAgents();
      break;
    case "view": case "view_closed":
      if (!event.user || event.user === state.me) readViews();
      break;
    case "socket":
      state.sockets = event.connections;
      drawBanner();
      break;
    case "call":
      drawer.refresh();
      break;
    case "typing":
      state.typing.set(`${event.channel} ${event.thread_ts ?? ""}`, event.status);
      drawTyping();
      break;
  }
}

function onMessage(event) {
  if (!channel(event.channel)) readWorkspace(); // a DM that was just opened
  const open = event.channel === state.channel;
  if (open || state.messages.has(event.channel)) readMessages(event.channel);
  if (open && state.thread && (!event.thread_ts || event.thread_ts === state.thread || event.ts === state.thread)) readThread(`${state.channel} ${state.thread}`);
  if (event.type === "message" || event.type === "ephemeral") count(event);
}

// count notes for everybody who is in a channel that something came there,
// unless they are looking; and whether it is for them: a direct message, a
// mention, or what only they see.
function count(event) {
  const known = channel(event.channel);
  for (const one of players()) {
    const looking = one.id === state.me && event.channel === state.channel && !document.hidden;
    if (looking || event.author === one.id || (known && !isMember(known, one.id))) continue;
    if (event.type === "ephemeral" && event.user !== one.id) continue;
    const key = `${one.id} ${event.channel}`;
    const before = state.unread.get(key) ?? { unread: 0, mine: 0 };
    const mine = event.type === "ephemeral" || known?.kind === "im" || (event.mentions ?? []).includes(one.id);
    state.unread.set(key, { unread: before.unread + 1, mine: before.mine + (mine ? 1 : 0) });
  }
  drawSidebar();
  drawWho();
  drawTitle();
}

const seen = () => state.unread.delete(`${state.me} ${state.channel}`);

// ——— Going places ———

function go({ channelID = state.channel, thread = null, tab = "messages", pane, message = null, focus = !message }) {
  if (tab === "home" && !app().home_tab) tab = "messages";
  const moved = channelID !== state.channel;
  const turned = moved || tab !== state.tab;
  state.looked = message;
  state.channel = channelID;
  state.thread = thread;
  state.tab = tab;
  state.pane = pane ?? (thread ? "thread" : "channel");
  seen();
  const hash = `#/${channelID}${thread ? `/${thread}` : tab === "messages" ? "" : `/${tab}`}`;
  if (location.hash !== hash) history.pushState(null, "", hash);
  if (moved) lists.channel.clear();
  drawAll();
  readMessages(channelID);
  if (thread) { lists.thread.clear(); readThread(`${channelID} ${thread}`).then(() => focus && part.threadComposer?.focus()); }
  if (tab === "home") api.openTab(state.me, "home").then(readViews);
  else if (tab === "messages" && turned && isAgent() && isAppDM(channel(channelID))) api.openTab(state.me, "messages");
}

// lookAt goes to the message that a link names, once it is there.
function lookAt() {
  const found = state.looked && [...document.querySelectorAll(`[data-ts="${CSS.escape(state.looked)}"]`)].findLast((one) => one.checkVisibility());
  if (!found) return;
  state.looked = null;
  found.scrollIntoView({ block: "center" });
  found.classList.add("looked-at");
  found.focus({ preventScroll: true });
}

function fromHash() {
  const [place, message] = location.hash.split("@");
  const [, id, rest] = place.split("/");
  if (!id || !channel(id) || !myChannels().includes(channel(id))) return false;
  const isTab = rest === "home" || rest === "about";
  go({ channelID: id, thread: rest && !isTab ? rest : null, tab: isTab ? rest : "messages", message });
  return true;
}

function become(id) {
  state.me = id;
  remember("me", id);
  state.views = [];
  state.notices.clear();
  state.agents = new Map();
  lists.channel.clear();
  lists.thread.clear();
  const here = channel(state.channel);
  // The DM of one user is not open to another: theirs takes its place.
  if (!myChannels().includes(here)) {
    const own = isAppDM(here) ? myChannels().find(isAppDM) : null;
    state.thread = null;
    state.channel = (own ?? myChannels()[0])?.id ?? null;
  }
  announce(`You are ${user(id)?.name}`);
  go({ channelID: state.channel, thread: state.thread, tab: state.tab, pane: state.pane });
  readViews();
  readAgents();
}

// ——— Doing ———

async function send(text, threadTS, files = []) {
  const command = /^(\/[a-z][\w-]*)(?:\s+([\s\S]*))?$/i.exec(text);
  if (command && files.length) return "Files can't be sent with a slash command.";
  if (command && !threadTS) return runCommand(command[1], command[2] ?? "");
  if (command) return "Slash commands can't be used in threads.";
  const answer = await api.sendMessage({ user: state.me, channel: state.channel, text: resolveMentions(text), ...(threadTS && { thread_ts: threadTS }), ...(files.length && { files: await encoded(files) }) });
  if (!answer.ok) return answer.sentence;
  readMessages(state.channel);
  if (threadTS) readThread(`${state.channel} ${threadTS}`);
  return null;
}

// tryOut says a sentence to try. Somebody who has just come doesn't know that
// the answer will be in a thread: where there is room it opens by itself.
async function tryOut(sentence, inDM) {
  const here = state.channel;
  const answer = await api.sendMessage({ user: state.me, channel: here, text: sentenceText(sentence, inDM) });
  if (!answer.ok) return told(answer);
  state.tried = `${here} ${answer.ts}`;
  return readMessages(here);
}

// followTried opens the thread of what was tried, once there is something in it,
// unless the person has opened another one meanwhile.
const roomForThread = matchMedia("(min-width: 761px)");
function followTried() {
  const [id, ts] = (state.tried ?? "").split(" ");
  if (id !== state.channel || !state.messages.get(id).some((one) => one.ts === ts && one.reply_count)) return;
  state.tried = null;
  if (roomForThread.matches && !state.thread && state.tab === "messages") go({ thread: ts, focus: false });
}

// invite puts somebody into the open channel, as Slack's own /invite does.
async function invite(who) {
  const answer = await api.join({ user: who.id, channel: state.channel });
  if (!answer.ok) return answer.sentence;
  announce(`${who.name} is in ${channelSign(channel(state.channel))}${channelName(channel(state.channel))} now`);
  await readWorkspace();
  return null;
}

async function runCommand(name, text) {
  if (name === "/invite") {
    const who = state.workspace.users.find((one) => `@${one.name}` === text.trim());
    return who ? invite(who) : `Whom? /invite @${appName()}`;
  }
  const answer = await api.command({ user: state.me, channel: state.channel, command: name, text: resolveMentions(text) });
  if (answer.ok && answer.delivered !== false && answer.acked !== false) return null;
  if (answer.error === "unknown_command") return `${name} is not a command of ${appName()}.`;
  if (!answer.ok) return `${name} failed: ${answer.sentence}`;
  return `${name} failed with the error “${answer.delivered === false ? "dispatch_failed" : "operation_timeout"}”: ${appName()} ${answer.delivered === false ? "is not connected" : "didn't answer"}.`;
}

// edit lets the author change a message, in a window of its own.
async function edit(message) {
  const plain = asTyped(message.text);
  const text = await dialog("confirm", (close) => {
    const field = h("textarea", { class: "field", rows: "5", "aria-label": "Message", dataset: { testid: "edit-text" } });
    field.value = plain;
    return h("form", { dataset: { testid: "edit" }, on: { submit: (event) => { event.preventDefault(); close(field.value); } } },
      h("header", { class: "dialog-head" }, h("h2", {}, "Edit message")), h("div", { class: "dialog-body" }, field),
      h("footer", { class: "dialog-foot" }, h("button", { type: "button", class: "button", on: { click: () => close() } }, "Cancel"), h("button", { type: "submit", class: "button button-primary", dataset: { testid: "edit-save" } }, "Save")));
  });
  if (!text?.trim() || text === plain) return;
  told(await api.editMessage({ user: state.me, channel: state.channel, ts: message.ts, text: resolveMentions(text) }));
}

async function remove(message) {
  const sure = await confirmed({ title: { text: "Delete message", emoji: false }, text: { type: "plain_text", text: "It can't be brought back.", emoji: false }, confirm: { text: "Delete", emoji: false }, deny: { text: "Cancel", emoji: false }, style: "danger" });
  if (sure) told(await api.deleteMessage({ user: state.me, channel: state.channel, ts: message.ts }));
}

// newChat begins a thread with the assistant, as its "New chat" does.
async function newChat() {
  const answer = await api.startAssistant({ user: state.me });
  if (!answer.ok) return told(answer);
  await readMessages(answer.channel);
  return go({ channelID: answer.channel, thread: answer.thread_ts });
}

// shortcut hands a message to the app, by one of its entries in the message's menu.
async function shortcut(message, one) {
  const sentence = complaint(await api.shortcut({ user: state.me, channel: state.channel, ts: message.ts, callback_id: one.callback_id }));
  if (sentence) notice(sentence);
}

async function copyLink(message) {
  const query = isReply(message) ? `?thread_ts=${message.thread_ts}&cid=${state.channel}` : "";
  const link = `${location.origin}/archives/${state.channel}/p${message.ts.replace(".", "")}${query}`;
  try { await navigator.clipboard.writeText(link); notice("Link copied"); } catch { notice(link); }
}

// notice says something in passing, to the eye and to a screen reader.
let noticeTimer;
function notice(sentence) {
  announce(sentence);
  part.toast.textContent = sentence;
  part.toast.hidden = false;
  clearTimeout(noticeTimer);
  noticeTimer = setTimeout(() => { part.toast.hidden = true; }, 6000);
}

const told = (answer) => { if (!answer.ok) notice(answer.sentence); };

// scenes gives the elements of a message what they do.
function scenes(message) {
  const key = `${state.channel} ${message.ts} ${state.me}`;
  if (!actionDrafts.has(key)) actionDrafts.set(key, new Map());
  const where = { user: state.me, channel: state.channel, ts: message.ts };
  return {
    name: message.ts,
    draft: actionDrafts.get(key),
    act: ({ blockID, element, value }) => api.act({ ...where, block_id: blockID, action_id: element.action_id, ...(needsValue(element) && { value }) }),
  };
}

// ——— Drawing ———

const lists = {};
const modals = new Modals(() => readViews());
const drawer = new Drawer();

function build() {
  part.workspace = h("span", { class: "workspace-name", dataset: { testid: "workspace-name" } });
  part.who = h("label", { class: "who" });
  part.keys = iconButton("keyboard", "Keys", { class: "icon-button wide-only", "aria-haspopup": "dialog", dataset: { testid: "keys" }, on: { click: showKeys } });
  part.traffic = iconButton("activity", "Frames and calls", { class: "icon-button", "aria-expanded": "false", dataset: { testid: "drawer-toggle" }, on: { click: () => drawer.toggle() } });
  part.banner = h("div", { class: "banner", role: "status", dataset: { testid: "banner" }, hidden: true });
  part.sidebar = h("nav", { class: "sidebar", "aria-label": "Channels and direct messages", dataset: { testid: "sidebar" } });
  part.head = h("header", { class: "pane-head" });
  part.tabs = h("div", { class: "tabs", role: "tablist", "aria-label": "Of this app" });
  part.tabs.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const all = [...part.tabs.children];
    event.preventDefault();
    all.at((all.indexOf(document.activeElement) + step) % all.length).click();
  });
  part.log = h("div", { class: "messages", role: "log", "aria-live": "polite", "aria-label": "Messages", tabindex: "0", dataset: { testid: "messages" } });
  part.home = h("div", { class: "home", dataset: { testid: "home" }, hidden: true });
  part.prompts = h("div", { class: "prompts", role: "group", "aria-label": "Suggested prompts", hidden: true, dataset: { testid: "prompts" } });
  part.toast = h("div", { class: "toast", hidden: true, "aria-hidden": "true", dataset: { testid: "toast" } });
  part.channelTyping = h("div", { class: "typing", role: "status", hidden: true, dataset: { testid: "channel-typing" } });
  part.absent = h("div", { class: "absent", role: "note", hidden: true, dataset: { testid: "absent" } });
  part.composer = h("div", { class: "composer-slot" });
  part.main = h("main", { class: "channel-pane", dataset: { testid: "channel" } }, part.head, part.tabs, part.log, part.home, part.channelTyping, part.absent, part.prompts, part.composer);
  part.threadHead = h("header", { class: "pane-head" });
  part.threadLog = h("div", { class: "messages", role: "log", "aria-live": "polite", "aria-label": "Thread", tabindex: "0", dataset: { testid: "thread-messages" } });
  part.threadPrompts = h("div", { class: "prompts", role: "group", "aria-label": "Suggested prompts", hidden: true, dataset: { testid: "thread-prompts" } });
  part.threadSlot = h("div", { class: "composer-slot" });
  part.typing = h("div", { class: "typing", role: "status", hidden: true, dataset: { testid: "typing" } });
  part.thread = h("aside", { class: "thread-pane", "aria-label": "Thread", hidden: true, dataset: { testid: "thread" } }, part.threadHead, part.threadLog, part.typing, part.threadPrompts, part.threadSlot);
  lists.channel = new MessageList(part.log, { scenes, edit, remove, shortcut, copyLink, onThread: (ts) => go({ thread: ts }) });
  lists.thread = new MessageList(part.threadLog, { scenes, edit, remove, shortcut, copyLink, inThread: true });
  drawer.onToggle = (open) => { part.traffic.setAttribute("aria-expanded", String(open)); root.classList.toggle("with-drawer", open); if (!open) part.traffic.focus(); };
  replace(root,
    h("header", { class: "topbar" }, part.workspace, h("span", { class: "spacer" }), part.who, part.keys, part.traffic),
    part.banner, h("div", { class: "panes" }, part.sidebar, part.main, part.thread), drawer.element, part.toast);
  document.addEventListener("keydown", onKey);
  window.addEventListener("popstate", fromHash);
  document.addEventListener("visibilitychange", () => { if (!document.hidden) { seen(); drawTitle(); drawSidebar(); drawWho(); } });
}

// regions are the parts of the page between which F6 moves, as in Slack, each
// with what takes the focus there.
function regions() {
  const within = (area, selector) => ({ area, target: area.querySelector(selector) });
  const link = part.sidebar.querySelector('[aria-current="page"]') ? '[aria-current="page"]' : "a";
  const all = [within(part.who, "select"), within(part.sidebar, link), { area: part.log, target: part.log }, within(part.home, "button, select, input, textarea, a"), within(part.composer, "textarea"),
    { area: part.threadLog, target: part.threadLog }, within(part.threadSlot, "textarea")];
  return all.filter(({ area, target }) => target && area.checkVisibility());
}

function nextRegion(step) {
  const all = regions();
  const at = all.findIndex(({ area }) => area.contains(document.activeElement));
  all.at(at < 0 ? (step > 0 ? 0 : -1) : (at + step) % all.length)?.target.focus();
}

const keys = [
  ["F6, Shift + F6", "to the next or the previous part of the page"],
  ["Arrows, Home, End", "from message to message, when the focus is on the messages; within a menu or the tabs"],
  ["Tab, Shift + Tab", "into what a message offers, and on"],
  ["Enter, Space", "press, open, choose"],
  ["Escape", "close what is in front: a menu, a window, the thread"],
  ["Enter, Shift + Enter", "send what you wrote; start a new line"],
  ["@, #, /", "name somebody or a channel; give a command"],
];

// showKeys says which keys do what.
function showKeys() {
  return dialog("keys", (close) => h("div", { class: "details-box", dataset: { testid: "keys-dialog" } },
    h("header", { class: "dialog-head" }, h("h2", {}, "Keys"), iconButton("close", "Close", { on: { click: () => close() } })),
    h("div", { class: "dialog-body" }, h("dl", { class: "keys" }, keys.map(([key, what]) => [h("dt", {}, key), h("dd", {}, what)])))));
}

// leaveThread closes the thread; the focus goes to where it was opened from.
function leaveThread() {
  const ts = state.thread;
  go({});
  const message = part.log.querySelector(`[data-ts="${CSS.escape(ts)}"]`);
  (message?.querySelector(".reply-bar") ?? message)?.focus();
}

// Escape closes what is in front: menus and dialogs stop it on their own.
function onKey(event) {
  if (event.key === "F6" && !document.querySelector("dialog[open]")) { event.preventDefault(); nextRegion(event.shiftKey ? -1 : 1); return; }
  if (event.key !== "Escape" || document.querySelector("dialog[open]")) return;
  if (state.thread) leaveThread();
}

function drawAll() {
  root.setAttribute("aria-busy", "false");
  root.dataset.pane = state.pane;
  part.workspace.textContent = state.workspace.team?.name ?? "Local Slack";
  drawWho();
  drawSidebar();
  drawBanner();
  drawTitle();
  drawHead();
  drawComposers();
  drawChannel();
  drawThread();
  drawHome();
  drawPrompts();
  drawTyping();
}

function drawTitle() {
  const unread = waitingFor(state.me);
  const here = channel(state.channel);
  const place = here ? `${channelSign(here)}${channelName(here)} – ` : "";
  document.title = `${unread ? `(${unread}) ` : ""}${place}${state.workspace?.team?.name ?? "Local Slack"}`;
}

function drawWho() {
  redraw(part.who, [state.me, players(), players().map((one) => waitingFor(one.id))], whoSwitch);
}

function whoSwitch() {
  const focused = document.activeElement?.classList.contains("who-select");
  const select = h("select", { class: "who-select", "aria-label": "You are", dataset: { testid: "user-switch" }, on: { change: (event) => become(event.target.value) } },
    players().map((one) => h("option", { value: one.id, selected: one.id === state.me }, one.name + (kindWord(one) ? ` (${kindWord(one)})` : "") + (waitingFor(one.id) ? ` · ${waitingFor(one.id)} new` : ""))));
  const elsewhere = players().reduce((sum, one) => sum + (one.id === state.me ? 0 : waitingFor(one.id)), 0);
  if (focused) queueMicrotask(() => select.focus());
  return [h("span", { class: "who-label" }, "You are"), avatar(user(state.me), "avatar-small"), h("span", { class: "who-box" }, select, icon("chevron"), elsewhere > 0 && h("span", { class: "who-new", title: "Others have new messages", dataset: { testid: "others-new" } }, String(elsewhere), h("span", { class: "sr-only" }, " new messages for others")))];
}

function drawBanner() {
  const sentence = !state.live ? "The local Slack does not answer. Trying again…" : state.sockets === 0 ? `No app is connected: ${appName()} can't hear you. Start it, and it appears here.` : "";
  part.banner.hidden = !sentence;
  redraw(part.banner, sentence, () => [icon("warning"), sentence]);
}

function drawSidebar() {
  redraw(part.sidebar, [state.me, state.channel, myChannels(), [...state.unread], app(), state.workspace.users], sidebar);
}

function sidebar() {
  const mine = myChannels();
  const row = (one) => {
    const fresh = unreadOf(state.me, one.id);
    const [unread, mine] = [fresh?.unread > 0, fresh?.mine ?? 0];
    const face = one.kind === "im" ? [avatar(partner(one), "avatar-small"), h("span", { class: "channel-label" }, isolated(channelName(one))), partner(one)?.kind === "bot" && h("span", { class: "badge" }, "APP")]
      : [icon(channelMark(one)), h("span", { class: "channel-label" }, isolated(one.name))];
    return h("li", {}, h("a", { href: `#/${one.id}`, class: ["channel-row", one.id === state.channel && "current", unread && "unread"], "aria-current": one.id === state.channel ? "page" : null, dataset: { testid: "channel-link", channelId: one.id, kind: one.kind },
      on: { click: (event) => { event.preventDefault(); go({ channelID: one.id }); } } }, face, unread && h("span", { class: "sr-only" }, " new messages"), mine > 0 && h("span", { class: "count" }, String(mine))));
  };
  const section = (title, rows) => rows.length > 0 && h("section", {}, h("h2", {}, title), h("ul", {}, rows.map(row)));
  const focused = document.activeElement?.dataset?.channelId;
  if (focused) queueMicrotask(() => part.sidebar.querySelector(`[data-channel-id="${CSS.escape(focused)}"]`)?.focus());
  return [
    section("Channels", mine.filter((one) => one.kind !== "im")),
    section("Direct messages", mine.filter((one) => one.kind === "im")),
    h("p", { class: "about", dataset: { testid: "about" } }, h("b", {}, "A local Slack for development."), " It is no security boundary: whoever opens this page can be anyone in it."),
  ];
}

function drawHead() {
  const here = channel(state.channel);
  part.tabs.hidden = !isAppDM(here);
  redraw(part.head, [state.me, here, app(), state.workspace.users], () => (here ? channelHead(here) : h("h1", {}, "No channel")));
  const focused = part.tabs.contains(document.activeElement);
  if (focused) queueMicrotask(() => part.tabs.querySelector('[aria-selected="true"]')?.focus());
  const tab = (name, title) => h("button", { type: "button", role: "tab", class: ["tab", state.tab === name && "current"], "aria-selected": String(state.tab === name), tabindex: state.tab === name ? "0" : "-1", dataset: { testid: `tab-${name}` }, on: { click: () => go({ tab: name }) } }, title);
  redraw(part.tabs, [state.tab, app().home_tab], () => [app().home_tab && tab("home", "Home"), tab("messages", "Messages"), tab("about", "About")].filter(Boolean));
}

function channelHead(here) {
  return [
    iconButton("back", "Back to channels", { class: "icon-button phone-only", dataset: { testid: "menu" }, on: { click: () => { state.pane = "list"; drawAll(); } } }),
    here.kind === "im" ? avatar(partner(here), "avatar-small") : icon(channelMark(here)),
    h("h1", { dataset: { testid: "channel-name" } }, isolated(channelName(here))),
    here.kind === "im" && partner(here)?.kind === "bot" && h("span", { class: "badge" }, "APP"),
    h("span", { class: "spacer" }),
    isAppDM(here) && isAgent() && h("button", { type: "button", class: "button button-small", "aria-label": "New chat", title: "New chat", dataset: { testid: "new-chat" }, on: { click: newChat } }, icon("plus"), h("span", { class: "wide-only" }, "New chat")),
    detailsButton(here),
  ];
}

// detailsButton opens the details: who is in a channel, and everyone's ids.
function detailsButton(here) {
  const how = { "aria-haspopup": "dialog", dataset: { testid: "details" }, on: { click: () => showDetails(here) } };
  const count = here.members?.length;
  if (here.kind === "im" || !count) return iconButton("people", "Details and ids", how);
  return h("button", { type: "button", class: "members", title: `${here.members.map((id) => user(id)?.name ?? id).join(", ")}: details and ids`, ...how },
    h("span", { class: "member-avatars" }, here.members.slice(0, 3).map((id) => avatar(user(id), "avatar-small"))), `${count}`, h("span", { class: "sr-only" }, " members: details and ids"));
}

function drawComposers() {
  const here = channel(state.channel);
  const key = `${state.me} ${state.channel}`;
  part.composer.hidden = state.tab !== "messages" || !here;
  part.absent.hidden = part.composer.hidden || hasBot(here);
  redraw(part.absent, part.absent.hidden ? "" : [here.id, here.name, appName()], () => absentBot(here));
  if (part.composerKey !== key && here) {
    part.composerKey = key;
    const made = makeComposer({ key, name: "composer", channelID: here.id, label: `Message ${channelSign(here)}${channelName(here)}`, onSend: (text, files) => send(text, null, files), extra: tryButton(isAppDM(here)) });
    replace(part.composer, made.element, h("p", { class: "composer-foot" }, h("span", { class: "wide-only" }, h("kbd", {}, "Enter"), " sends, ", h("kbd", {}, "Shift"), " + ", h("kbd", {}, "Enter"), " starts a new line · "), "Local Slack: no security boundary"));
  }
  const threadKey = `${key} ${state.thread}`;
  if (state.thread && part.threadKey !== threadKey) {
    const made = makeComposer({ key: threadKey, name: "reply", channelID: here?.id, label: "Reply…", onSend: (text, files) => send(text, state.thread, files) });
    part.threadComposer = made;
    replace(part.threadSlot, made.element);
  }
  part.threadKey = state.thread ? threadKey : null;
}

// absentBot says that the app can't hear what is said here, and mends it.
function absentBot(here) {
  if (!here || hasBot(here)) return [];
  const add = h("button", { type: "button", class: "button button-small", dataset: { testid: "add-bot" }, on: { click: async () => { add.disabled = true; const wrong = await invite(bot()); add.disabled = false; if (wrong) announce(wrong); } } }, `Add ${appName()}`);
  return [h("span", { class: "absent-words" }, h("b", {}, isolated(appName())), " is not in ", icon(channelMark(here)), isolated(here.name), " and doesn't hear what is said here."), add];
}

// tryButton opens the sentences to try, when the channel is no longer empty.
function tryButton(inDM) {
  const toggle = iconButton("sparkle", "Sentences to try", { dataset: { testid: "try" } });
  return makeMenu(toggle, () => sentences.map((sentence) => ({ label: sentence.title, detail: sentenceFace(sentence, inDM), take: () => tryOut(sentence, inDM) })), "Sentences to try");
}

// drawPrompts shows the sentences that the app suggests: in its DM, and in an
// assistant's thread until somebody has written there.
function drawPrompts() {
  const here = channel(state.channel);
  const asked = state.tab === "messages" && isAppDM(here) && isAgent() ? agentThread(here.id) : null;
  const written = (state.replies.get(state.thread) ?? []).some((one) => one.user === state.me);
  const inThread = state.thread && !written ? agentThread(state.channel, state.thread) : null;
  prompts(part.prompts, asked, null);
  prompts(part.threadPrompts, inThread, state.thread);
}

function prompts(slot, thread, threadTS) {
  slot.hidden = !thread?.prompts.length;
  redraw(slot, [thread, threadTS, state.channel, state.me], () => (slot.hidden ? [] : [
    h("span", { class: "prompts-title" }, isolated(thread.prompt_title || "Suggested")),
    thread.prompts.map((one) => h("button", { type: "button", class: "prompt", title: one.message, dataset: { testid: "prompt" }, on: { click: () => send(one.message, threadTS).then((wrong) => wrong && notice(wrong)) } }, icon("sparkle"), isolated(one.title)))]));
}

// visible are the messages of a list that the played user sees: ephemeral ones
// are for one person.
const visible = (messages) => messages.filter((message) => !message.ephemeral_to || message.ephemeral_to === state.me);

const isReply = (message) => message.thread_ts && message.thread_ts !== message.ts && message.subtype !== "thread_broadcast";

function drawChannel() {
  const here = channel(state.channel);
  part.log.hidden = state.tab !== "messages";
  if (!here || !state.messages.has(here.id)) return;
  const messages = visible(state.messages.get(here.id)).filter((message) => !isReply(message));
  // What the app itself suggests takes the place of the sentences to try.
  const suggests = isAppDM(here) && isAgent() && agentThread(here.id)?.prompts.length > 0;
  const introKey = `${here.id} ${state.me} ${messages.length === 0} ${hasBot(here)} ${suggests}`;
  part.intro = part.introKey === introKey ? part.intro : intro(here, messages.length === 0 && !suggests);
  part.introKey = introKey;
  const waiting = new Set(visible(state.messages.get(here.id)).filter((message) => isReply(message) && asks(message)).map((message) => message.thread_ts));
  lists.channel.show(messages, { before: [part.intro], waiting });
}

// intro stands above the first message. In an empty channel it offers the
// sentences to try.
function intro(here, empty) {
  const inDM = isAppDM(here);
  const title = here.kind === "im" ? [avatar(partner(here), "avatar-large"), h("h2", {}, isolated(channelName(here)))] : [h("h2", {}, icon(channelMark(here)), isolated(here.name))];
  const words = inDM ? `This is your conversation with ${appName()}. Every message here reaches it.` : here.kind === "im" ? "This is the beginning of your conversation." : !hasBot(here) ? "This is the beginning of the channel." : `This is the beginning of the channel. Mention @${bot()?.name ?? "the app"} to ask it for something.`;
  return h("div", { class: "intro", dataset: { testid: "intro" } }, title, h("p", { class: "muted" }, words),
    empty && hasBot(here) && h("div", { class: "try", role: "group", "aria-label": "Sentences to try" }, h("h3", {}, "Try one of these"), sentences.map((sentence) => h("button", { type: "button", class: "try-one", dataset: { testid: "try-sentence" }, on: { click: () => tryOut(sentence, inDM) } },
      h("span", { class: "try-title" }, sentence.title), h("span", { class: "try-text" }, sentenceFace(sentence, inDM)), icon("send")))));
}

function drawThread() {
  const open = Boolean(state.thread);
  part.thread.hidden = !open;
  root.classList.toggle("with-thread", open);
  if (!open) return;
  const here = channel(state.channel);
  const title = agentThread(state.channel, state.thread)?.title;
  redraw(part.threadHead, [state.me, here, title], () => [
    iconButton("back", "Back", { class: "icon-button phone-only", dataset: { testid: "thread-back" }, on: { click: leaveThread } }),
    h("h1", { dataset: { testid: "thread-title" } }, title ? isolated(title) : "Thread"), h("span", { class: "muted thread-place" }, here && here.kind !== "im" && icon(channelMark(here)), isolated(channelName(here))),
    h("span", { class: "spacer" }), iconButton("close", "Close thread", { class: "icon-button wide-only", dataset: { testid: "thread-close" }, on: { click: leaveThread } })]);
  const messages = visible(state.replies.get(state.thread) ?? []);
  const count = messages.filter((message) => message.ts !== state.thread && !message.ephemeral_to).length;
  if (part.dividerCount !== `${state.thread} ${count}`) { part.dividerCount = `${state.thread} ${count}`; part.divider = threadDivider(count); }
  lists.thread.show(messages, { afterFirst: count ? part.divider : null });
  drawTyping();
  drawPrompts();
}

// drawTyping shows what the app says that it is doing: in the open thread, and
// below the channel in one that is not open.
function drawTyping() {
  const others = state.tab !== "messages" ? [] : [...state.typing].filter(([key, said]) => said && key.startsWith(`${state.channel} `) && key !== `${state.channel} ${state.thread}`);
  part.channelTyping.hidden = others.length === 0;
  redraw(part.channelTyping, [others, bot()], () => (others.length ? [avatar(bot(), "avatar-small"), h("span", {}, isolated(appName()), " ", isolated(others.at(-1)[1]), others.length > 1 ? ` (and ${others.length - 1} more)` : "")] : []));
  const status = state.thread ? state.typing.get(`${state.channel} ${state.thread}`) : "";
  const busy = state.thread && agentThread(state.channel, state.thread)?.session === "processing";
  part.typing.hidden = !status && !busy;
  const stop = () => api.stopAgent({ user: state.me, channel: state.channel, ts: state.thread }).then(told);
  redraw(part.typing, [status, busy, state.channel, state.thread, state.me, bot()], () => (status || busy ? [avatar(bot(), "avatar-small"), h("span", {}, isolated(appName()), " ", isolated(status || "is working…")),
    busy && h("button", { type: "button", class: "button button-small", dataset: { testid: "agent-stop" }, on: { click: stop } }, icon("stop"), "Stop")] : []));
}

function drawHome() {
  const here = channel(state.channel);
  const tab = isAppDM(here) ? state.tab : "messages";
  part.home.hidden = tab === "messages";
  if (tab === "about") return replace(part.home, h("div", { class: "intro" }, avatar(bot(), "avatar-large"), h("h2", {}, isolated(appName())), h("p", { class: "muted" }, "The app that is being developed here."),
    h("dl", { class: "facts" }, h("dt", {}, "App"), h("dd", {}, app().id ?? ""), h("dt", {}, "Bot user"), h("dd", {}, app().bot_user_id ?? ""), h("dt", {}, "Connections"), h("dd", {}, String(state.sockets ?? "unknown")))));
  if (tab !== "home") return undefined;
  const view = state.views.findLast((one) => one.type === "home");
  if (!view) return replace(part.home, h("div", { class: "intro" }, h("h2", {}, "Nothing here yet"), h("p", { class: "muted" }, `${appName()} has not published a Home tab for ${user(state.me)?.name}.`)));
  const signature = JSON.stringify([view, state.me]);
  if (part.homeSignature === signature && part.home.querySelector(".home-view")) return undefined;
  part.homeSignature = signature;
  if (part.homeDraft?.id !== view.id) part.homeDraft = { id: view.id, draft: new Map() };
  const back = part.home.contains(document.activeElement) ? whereFocusIs() : null;
  if (back) queueMicrotask(back);
  const scene = { name: view.id, draft: part.homeDraft.draft, act: ({ blockID, element, value }) => api.actInView(view.id, { user: state.me, block_id: blockID, action_id: element.action_id, ...(needsValue(element) && { value }) }) };
  return replace(part.home, h("div", { class: "home-view blocks", role: "region", "aria-label": `Home of ${appName()}` }, renderBlocks(view.blocks, scene)));
}

// ——— Start ———

build();
api.events({
  onOpen: async () => {
    const again = state.workspace !== null;
    state.live = true;
    if (again) drawer.reset();
    await readAll();
    if (!again && state.workspace && !fromHash() && state.channel) go({ channelID: state.channel });
  },
  onLost: () => { state.live = false; drawBanner(); },
  onEvent,
});
