// The composer: a text box that knows mentions, channels and slash commands.
import { h, icon, iconButton, announce } from "./dom.js";
import { state, app, appName, bot, channel, user, isMember, kindWord } from "./state.js";
import { avatar } from "./messages.js";
import { isolated, unescape } from "./text.js";

// sentences are what a person can try at once. BOT stands for the mention,
// which a DM with the app does not need.
export const sentences = [
  { title: "Run a command", text: "BOT run `printf ok > proof.txt`" },
  { title: "Read a file", text: "BOT read README.md" },
  { title: "Write a file", text: "BOT write notes.txt: hello" },
  { title: "Three at once", text: "BOT run `date` and `uname -a` and `ls -la`" },
];

export const sentenceText = (sentence, inDM) => sentence.text.replace("BOT ", inDM ? "" : `<@${bot()?.id}> `);
export const sentenceFace = (sentence, inDM) => sentence.text.replace("BOT ", inDM ? "" : `@${bot()?.name} `);

// resolveMentions turns @name and #name, as a person types them, into Slack's
// tokens. Longer names go first: @bob must not eat the beginning of @bobby.
export function resolveMentions(text) {
  const people = [...(state.workspace?.users ?? [])].sort((a, b) => b.name.length - a.name.length);
  const places = [...(state.workspace?.channels ?? [])].filter((one) => one.kind !== "im").sort((a, b) => b.name.length - a.name.length);
  const kept = text.split(/(```[\s\S]*?```|`[^`\n]*`)/g); // code stays as it is typed
  return kept.map((part, index) => {
    if (index % 2) return part;
    for (const one of people) part = part.replace(mark("@", one.name), `$1<@${one.id}>`);
    for (const one of places) part = part.replace(mark("#", one.name), `$1<#${one.id}>`);
    return part;
  }).join("");
}

// asTyped is the way back: a stored text as a person would type it.
export const asTyped = (text) => unescape(text
  .replace(/<@(\w+)(?:\|[^<>]*)?>/g, (token, id) => (user(id) ? `@${user(id).name}` : token))
  .replace(/<#(\w+)(?:\|[^<>]*)?>/g, (token, id) => (channel(id) ? `#${channel(id).name}` : token))
  .replace(/<(https?:[^<>|]+)(?:\|[^<>]*)?>/g, "$1"));

const mark = (sign, name) => new RegExp(`(^|[\\s(])${sign}${name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}(?![\\w-])`, "giu");

// makeComposer builds a composer. place: { key, label, inDM, channelID, onSend }
// where onSend(text, files) resolves to a sentence when it went wrong.
export function makeComposer(place) {
  const box = h("textarea", { class: "composer-text", rows: "1", "aria-label": place.label, placeholder: place.label, dataset: { testid: `${place.name}-input` }, autocomplete: "off", spellcheck: "true", enterkeyhint: "send" });
  const send = iconButton("send", "Send", { class: "icon-button send", disabled: true, dataset: { testid: `${place.name}-send` } });
  const error = h("div", { class: "composer-error", role: "alert", hidden: true });
  const list = h("div", { class: "suggestions", role: "listbox", id: `${place.name}-suggestions`, "aria-label": "Suggestions", hidden: true });
  box.setAttribute("aria-controls", list.id);
  box.setAttribute("aria-autocomplete", "list");
  box.value = state.drafts.get(place.key) ?? "";

  const fit = () => {
    box.style.height = "auto";
    box.style.height = `${Math.min(box.scrollHeight, 220)}px`;
    send.disabled = box.value.trim() === "" && files.chosen.length === 0;
    state.drafts.set(place.key, box.value);
  };
  const submit = async () => {
    const text = box.value.replace(/\s+$/, "");
    const attached = files.chosen;
    if (!text.trim() && !attached.length) return;
    box.value = "";
    files.set([]);
    error.hidden = true;
    const sentence = await place.onSend(text, attached);
    if (!sentence) return;
    // What could not be sent is not lost, unless something new was typed.
    if (!box.value.trim()) { box.value = text; files.set(attached); }
    error.replaceChildren(icon("warning"), sentence);
    error.hidden = false;
    announce(sentence);
  };
  const files = attachments(place, () => fit(), (sentence) => { error.replaceChildren(icon("warning"), sentence); error.hidden = false; announce(sentence); });
  const suggestions = suggest(box, list, place, fit);
  box.addEventListener("input", () => { fit(); suggestions.update(); });
  // Enter sends. Some on-screen keyboards report no key but only the line break
  // that they are about to insert, so that counts, too.
  let newLine = false;
  let handled = false;
  box.addEventListener("keydown", (event) => {
    newLine = event.shiftKey || event.ctrlKey || event.altKey;
    handled = event.key === "Enter" && !newLine;
    if (event.isComposing) return;
    if (suggestions.key(event)) return;
    if (handled) { event.preventDefault(); submit(); }
  });
  box.addEventListener("beforeinput", (event) => {
    if (event.inputType !== "insertLineBreak" || newLine || event.isComposing) return;
    event.preventDefault();
    if (!handled) submit();
  });
  box.addEventListener("blur", () => setTimeout(() => suggestions.close(), 150));
  send.addEventListener("click", () => { submit(); box.focus(); });
  requestAnimationFrame(fit);

  const insert = (text) => {
    const at = box.selectionStart ?? box.value.length;
    box.setRangeText(text, at, box.selectionEnd ?? at, "end");
    box.focus();
    fit();
    suggestions.update();
  };
  const tools = h("div", { class: "composer-tools" }, files.button,
    h("button", { type: "button", class: "icon-button", title: "Mention someone", "aria-label": "Mention someone", on: { click: () => insert("@") } }, "@"),
    place.extra, h("span", { class: "spacer" }), send);
  const element = h("div", { class: "composer", dataset: { testid: place.name } }, list, h("div", { class: "composer-box" }, box, files.list, tools), error);
  files.receive(element, box);
  return { element, focus: () => box.focus(), box };
}

const mostBytes = 20 * 1024 * 1024;

// attachments is what belongs to the files of a composer: the button, the list
// of those chosen, and dropping and pasting them.
function attachments(place, changed, complain) {
  const list = h("ul", { class: "chips", "aria-label": "Files to send", hidden: true });
  const input = h("input", { type: "file", multiple: true, hidden: true, dataset: { testid: `${place.name}-file` }, on: { change: () => { add([...input.files]); input.value = ""; } } });
  const button = h("span", { class: "attach" }, input, iconButton("attach", "Attach files", { dataset: { testid: `${place.name}-attach` }, on: { click: () => input.click() } }));
  const set = (files) => {
    state.uploads.set(place.key, files);
    list.hidden = files.length === 0;
    list.replaceChildren(...files.map((file) => h("li", { class: "chip", dataset: { testid: "chip" } }, icon("file"), h("span", { class: "chip-name" }, isolated(file.name)),
      iconButton("close", `Remove ${file.name}`, { on: { click: () => { set(state.uploads.get(place.key).filter((one) => one !== file)); button.querySelector("button").focus(); } } }))));
    changed();
  };
  const add = (files) => {
    const fits = files.filter((file) => file.size > 0 && file.size <= mostBytes);
    if (fits.length < files.length) complain("A file must not be empty, nor larger than 20 MB.");
    const all = [...(state.uploads.get(place.key) ?? []), ...fits];
    if (all.length > 10) complain("Ten files at most go with a message.");
    set(all.slice(0, 10));
    if (fits.length) announce(`${fits.map((file) => file.name).join(", ")} attached`);
  };
  const receive = (element, box) => {
    const over = (is) => element.classList.toggle("dropping", is);
    element.addEventListener("dragover", (event) => { if ([...event.dataTransfer.types].includes("Files")) { event.preventDefault(); over(true); } });
    element.addEventListener("dragleave", () => over(false));
    element.addEventListener("drop", (event) => { event.preventDefault(); over(false); add([...event.dataTransfer.files]); box.focus(); });
    box.addEventListener("paste", (event) => { const files = [...event.clipboardData.files]; if (files.length) { event.preventDefault(); add(files); } });
    set(state.uploads.get(place.key) ?? []);
  };
  return { button, list, set, receive, get chosen() { return state.uploads.get(place.key) ?? []; } };
}

// encoded reads files as the control plane takes them.
export const encoded = (files) => Promise.all(files.map(async (file) => {
  const url = await new Promise((resolve, reject) => { const reader = new FileReader(); reader.onload = () => resolve(reader.result); reader.onerror = () => reject(reader.error); reader.readAsDataURL(file); });
  return { name: file.name, content: url.slice(url.indexOf(",") + 1), ...(file.type && { mimetype: file.type }) };
}));

// suggest offers people and channels while somebody types @ or #.
function suggest(box, list, place, changed) {
  let matches = [];
  let chosen = 0;
  let start = 0;
  const close = () => { list.hidden = true; matches = []; box.removeAttribute("aria-activedescendant"); };
  const take = (one) => {
    box.setRangeText(`${one.insert} `, start, box.selectionStart, "end");
    close();
    changed();
    box.focus();
  };
  const draw = () => {
    list.replaceChildren(...matches.map((one, index) => h("div", {
      class: ["suggestion", index === chosen && "chosen"], role: "option", id: `${list.id}-${index}`, "aria-selected": String(index === chosen), dataset: { testid: "suggestion" },
      on: { mousedown: (event) => { event.preventDefault(); take(one); } } }, one.face)));
    list.hidden = matches.length === 0;
    if (matches.length) box.setAttribute("aria-activedescendant", `${list.id}-${chosen}`);
  };
  const update = () => {
    const before = box.value.slice(0, box.selectionStart);
    const typed = (place.name === "composer" && /^()(\/)([\w-]*)$/.exec(before)) || /(^|[\s(])([@#])([\w.-]*)$/.exec(before);
    if (!typed) return close();
    start = before.length - typed[3].length - 1;
    matches = candidates(typed[2], typed[3].toLowerCase(), place.channelID).slice(0, 8);
    chosen = 0;
    draw();
  };
  const key = (event) => {
    if (list.hidden || !matches.length) return false;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") chosen = (chosen + (event.key === "ArrowDown" ? 1 : matches.length - 1)) % matches.length;
    else if (event.key === "Enter" && box.value === matches[chosen].insert) { close(); return false; } // a whole command is given
    else if ((event.key === "Enter" && !event.shiftKey) || event.key === "Tab") { event.preventDefault(); take(matches[chosen]); return true; }
    else if (event.key === "Escape") { event.stopPropagation(); close(); return true; }
    else return false;
    event.preventDefault();
    draw();
    return true;
  };
  return { update, close, key };
}

// commands are the slash commands that can be given here.
function commands() {
  const own = (app().commands ?? []).filter((name) => name !== "*").map((name) => ({ name, by: appName(), ...(app().usage?.[name] ?? {}) }));
  return [...own, { name: "/invite", by: "Slack", description: "Adds somebody to this channel", usage_hint: "@somebody" }];
}

function candidates(sign, typed, channelID) {
  if (sign === "/") {
    return commands().filter((one) => one.name.slice(1).startsWith(typed)).map((one) => ({ insert: one.name, face: [icon("bolt"),
      h("span", { class: "suggestion-words" }, h("span", {}, h("b", {}, isolated(one.name)), one.usage_hint && h("span", { class: "muted" }, " ", isolated(one.usage_hint))), h("span", { class: "muted small" }, isolated(one.description ?? ""), " · ", isolated(one.by)))] }));
  }
  if (sign === "#") {
    return state.workspace.channels.filter((one) => one.kind !== "im" && one.name.toLowerCase().startsWith(typed) && isMember(one, state.me))
      .map((one) => ({ insert: `#${one.name}`, face: [icon(one.kind === "private" ? "lock" : "hash"), isolated(one.name)] }));
  }
  const here = channel(channelID);
  const people = state.workspace.users.filter((one) => one.kind !== "deactivated" && one.name.toLowerCase().startsWith(typed) && (!here || isMember(here, one.id)));
  people.sort((a, b) => (b.id === bot()?.id) - (a.id === bot()?.id));
  return people.map((one) => ({ insert: `@${one.name}`, face: [avatar(user(one.id), "avatar-small"), h("b", {}, isolated(one.name)), h("span", { class: "muted small" }, one.id === bot()?.id ? "the app" : kindWord(one))] }));
}
