// Block Kit as DOM: everything that the server's validation lets through.
//
// A scene says where blocks stand and what their elements do:
//   scene.act({ blockID, element, value })  sends an action, resolves to its answer
//   scene.draft                              a Map of what was typed or chosen so far
//   scene.errors                             block_id → sentence (modals)
import { h, icon, spinner, iconButton, dialog, announce } from "./dom.js";
import { makeMenu } from "./menu.js";
import { names, textObject, plainText, mrkdwn, isolated, anchor, emojiNode, dateNode, userMention, channelMention, usergroupMention, broadcast, unescape } from "./text.js";

export const renderBlocks = (blocks, scene) => (blocks ?? []).map((block) => renderBlock(block, scene));

function renderBlock(block, scene) {
  const draw = blocks[block?.type];
  const body = draw ? draw(block, scene) : unknown(block);
  return h("div", { class: ["block", `block-${block?.type}`], dataset: { testid: "block", blockId: block?.block_id, blockType: block?.type } }, body);
}

const unknown = (block) => h("details", { class: "unknown" }, h("summary", {}, `Block “${block?.type}” has no picture here`), h("pre", { class: "code" }, JSON.stringify(block, null, 2)));

const blocks = {
  divider: () => h("hr", { class: "divider" }),
  header: (b) => h(`h${Math.min(6, (b.level ?? 1) + 2)}`, { class: ["header-text", `level-${b.level ?? 1}`] }, plainText(b.text)),
  section: (b, scene) => [
    h("div", { class: "section-main" },
      b.text && h("div", { class: "text" }, textObject(b.text)),
      b.fields && h("div", { class: "fields" }, b.fields.map((field) => h("div", { class: "text" }, textObject(field))))),
    b.accessory && h("div", { class: "accessory" }, renderElement(b.accessory, b.block_id, scene)),
  ],
  context: (b) => b.elements.map((e) => (e.type === "image" ? picture(e, "picture-tiny") : h("span", { class: "text" }, textObject(e)))),
  actions: (b, scene) => b.elements.map((e) => renderElement(e, b.block_id, scene)),
  context_actions: (b, scene) => b.elements.map((e) => renderElement(e, b.block_id, scene)),
  image: (b) => h("figure", {}, b.title && h("figcaption", {}, plainText(b.title)), picture(b)),
  rich_text: (b) => richText(b),
  input: inputBlock,
  file: (b) => h("div", { class: "attachment-file" }, icon("file"), isolated(b.external_id)),
  call: (b) => h("div", { class: "attachment-file" }, icon("people"), `Call ${b.call_id}`),
  video: (b) => h("figure", {}, h("figcaption", {}, anchor(b.title_url ?? b.video_url, unescape(b.title?.text))), b.description && h("p", { class: "muted" }, plainText(b.description)), picture({ alt_text: b.alt_text, image_url: b.video_url })),
  markdown: (b) => h("div", { class: "text" }, markdown(b.text)),
  table: (b, scene) => table(b, scene),
  data_table: (b, scene) => [h("div", { class: "caption" }, isolated(b.caption)), table(b, scene, true)],
  data_visualization: (b) => chart(b),
  task_card: (b) => taskCard(b),
  plan: (b) => plan(b),
  alert: (b) => h("div", { class: ["alert", `alert-${b.level ?? "default"}`], role: b.level === "error" ? "alert" : "note" }, icon(b.level === "success" ? "check" : b.level === "default" || !b.level ? "bolt" : "warning"), h("div", { class: "text" }, textObject(b.text))),
  card: (b, scene) => card(b, scene),
  carousel: (b, scene) => h("div", { class: "carousel", tabindex: "0", role: "group", "aria-label": "Cards" }, b.elements.map((item) => renderBlock(item, scene))),
  container: (b, scene) => container(b, scene),
  layout: (b, scene) => [
    h("div", { class: b.is_label_visible ? "caption" : "sr-only" }, isolated(b.label)),
    b.rows.map((row) => h("div", { class: "layout-row" }, row.items.map((item) => h("div", { class: ["layout-item", `align-${item.horizontal_alignment ?? "start"}`] }, renderBlock(item.block, scene))))),
  ],
};

// picture names an image instead of loading it: this page fetches nothing from
// elsewhere, and what would be shown is what the alt text says.
function picture(image, size = "") {
  const url = image.image_url ?? image.slack_file?.url;
  if (url && new URL(url, location.href).origin === location.origin) return h("img", { class: ["picture", size], src: url, alt: unescape(image.alt_text) });
  const label = h("span", { class: "picture-alt" }, isolated(unescape(image.alt_text)));
  return h("span", { class: ["picture picture-named", size], title: `Image, not loaded here: ${url ?? "file"}` }, icon("image"), size !== "picture-tiny" && url ? anchor(url, unescape(image.alt_text)) : label);
}

function card(b, scene) {
  return [
    b.hero_image && h("div", { class: "card-hero" }, picture(b.hero_image)),
    h("div", { class: "card-head" },
      b.icon ? picture(b.icon, "picture-tiny") : b.slack_icon && icon("sparkle"),
      h("div", {}, b.title && h("div", { class: "card-title text" }, textObject(b.title)), b.subtitle && h("div", { class: "muted text" }, textObject(b.subtitle)))),
    b.body && h("div", { class: "text" }, textObject(b.body)),
    b.subtext && h("div", { class: "muted small text" }, textObject(b.subtext)),
    b.actions && h("div", { class: "block-actions" }, b.actions.map((e) => renderElement(e, b.block_id, scene))),
  ];
}

function container(b, scene) {
  const head = [
    b.icon && picture(b.icon, "picture-tiny"),
    h("span", { class: "container-title" }, b.rich_text_title ? richText(b.rich_text_title) : plainText(b.title)),
    b.subtitle && h("span", { class: "muted" }, textObject(b.subtitle)),
  ];
  const children = h("div", { class: "container-body" }, renderBlocks(b.child_blocks, scene));
  if (!b.is_collapsible) return [h("div", { class: ["container-head", b.has_header_divider && "with-divider"] }, head), children];
  return h("details", { open: !b.default_collapsed }, h("summary", { class: "container-head" }, icon("chevron", "turning"), head), children);
}

const taskStates = {
  pending: { label: "Not started", draw: () => h("span", { class: "task-dot" }) },
  in_progress: { label: "In progress", draw: () => spinner("In progress") },
  complete: { label: "Done", draw: () => icon("check") },
  error: { label: "Failed", draw: () => icon("error") },
};

function taskCard(task) {
  const status = task.status ?? "pending";
  const state = taskStates[status];
  const more = [task.details && h("div", { class: "task-details" }, richText(task.details)), task.output && h("div", { class: "task-output" }, richText(task.output)),
    task.sources?.length ? h("div", { class: "task-sources" }, task.sources.map((source) => anchor(source.url, source.text))) : null].filter(Boolean);
  return h("div", { class: ["task", `task-${status}`], dataset: { testid: "task", taskId: task.task_id, status } },
    h("span", { class: "task-state", title: state?.label }, state?.draw(), h("span", { class: "sr-only" }, `${state?.label}: `)),
    h("div", { class: "task-body" }, !task.hide_title && h("div", { class: "task-title" }, isolated(task.title)), more));
}

function plan(b) {
  const tasks = b.tasks ?? [];
  const done = tasks.filter((task) => task.status === "complete" || task.status === "error").length;
  return h("details", { class: "plan", open: true, dataset: { testid: "plan" } },
    h("summary", {}, icon("chevron", "turning"), h("span", { class: "plan-title" }, isolated(b.title)), tasks.length > 0 && h("span", { class: "plan-count" }, `${done} of ${tasks.length}`)),
    h("div", { class: "plan-tasks" }, tasks.map((task) => h("div", { dataset: { blockId: task.block_id } }, taskCard(task)))));
}

// table draws both kinds: a data table's first row is its header.
function table(b, scene, header = false) {
  const cell = (value) => {
    if (!value) return null;
    if (value.type === "raw_text") return isolated(value.text);
    if (value.type === "raw_number") return value.text ?? String(value.value);
    if (value.type === "action_cell") return renderElement(value.element, b.block_id, scene);
    return richText(value);
  };
  const settings = b.column_settings ?? [];
  return h("div", { class: "table-scroll", tabindex: "0", role: "region", "aria-label": "Table" }, h("table", {}, b.rows.map((row, r) => h("tr", {}, row.map((value, column) =>
    h((header || !b.caption) && r === 0 ? "th" : "td", { class: [settings[column]?.align && `align-${settings[column].align}`, settings[column]?.is_wrapped && "wrapped"] }, cell(value)))))));
}

// chart shows the numbers: a table says what a drawing would.
function chart(b) {
  const points = b.chart.segments ? [{ name: "", data: b.chart.segments }] : b.chart.series ?? [];
  const labels = points[0]?.data.map((point) => point.label) ?? [];
  const largest = Math.max(1e-9, ...points.flatMap((series) => series.data.map((point) => Math.abs(Number(point.value)))));
  return [h("div", { class: "caption" }, isolated(b.title)), h("div", { class: "table-scroll" }, h("table", {}, labels.map((label, i) => h("tr", {}, h("th", {}, isolated(label)),
    points.map((series) => h("td", {}, h("span", { class: "bar", style: { "--part": Math.abs(Number(series.data[i]?.value ?? 0)) / largest } }), `${series.name} ${series.data[i]?.value ?? ""}`))))))];
}

// markdown renders what models write most: headings, lists, code, emphasis.
function markdown(text) {
  const nodes = [];
  let list = null;
  const parts = text.split(/```[^\n]*\n([\s\S]*?)(?:\n?```|$)/g);
  parts.forEach((part, index) => {
    if (index % 2) { list = null; nodes.push(h("pre", { class: "code" }, part)); return; }
    for (const line of part.split("\n")) {
      const item = /^\s*(?:([-*+])|(\d+)[.)])\s+(.*)$/.exec(line);
      const heading = /^(#{1,6})\s+(.*)$/.exec(line);
      if (item) {
        const tag = item[1] ? "ul" : "ol";
        if (!list || list.localName !== tag) nodes.push(list = h(tag, {}));
        list.append(h("li", {}, markdownLine(item[3])));
        continue;
      }
      list = null;
      if (heading) nodes.push(h("div", { class: `header-text level-${Math.min(4, heading[1].length)}` }, markdownLine(heading[2])));
      else if (/^\s*([-*_])\s*(\1\s*){2,}$/.test(line)) nodes.push(h("hr", { class: "divider" }));
      else if (line.trim()) nodes.push(h("p", {}, markdownLine(line)));
    }
  });
  return nodes;
}

// markdownLine turns the marks of Markdown into those of mrkdwn, which is what
// its renderer reads.
function markdownLine(line) {
  const linked = line.replace(/\[([^\]]+)\]\((https?:[^\s)]+)\)/g, "<$2|$1>");
  return mrkdwn(linked.replace(/(^|[^*])\*([^*\s][^*]*)\*(?!\*)/g, "$1_$2_").replace(/\*\*([^*]+)\*\*/g, "*$1*").replace(/~~([^~]+)~~/g, "~$1~"));
}

// richText renders a rich_text block. Its texts are no mrkdwn: `<!channel>` in
// one is those ten characters.
export function richText(b) {
  return h("div", { class: "rich-text text" }, (b?.elements ?? []).map((part) => richParts[part.type]?.(part) ?? unknown(part)));
}

const richParts = {
  rich_text_section: (part) => h("div", { class: "rich-section" }, inlines(part)),
  rich_text_quote: (part) => h("blockquote", { class: "quote" }, inlines(part)),
  rich_text_preformatted: (part) => h("pre", { class: "code", dataset: { testid: "preformatted" }, tabindex: "0" }, inlines(part)),
  rich_text_list: (part) => h(part.style === "ordered" ? "ol" : "ul", { class: ["rich-list", `indent-${part.indent ?? 0}`], start: part.offset ? part.offset + 1 : null },
    part.elements.map((item) => h("li", {}, inlines(item)))),
};

const inlines = (part) => part.elements.map((element) => styled(richInlines[element.type]?.(element) ?? `[${element.type}]`, element.style));

const richInlines = {
  text: (e) => isolated(e.text),
  link: (e) => anchor(e.url, e.text || e.url),
  user: (e) => userMention(e.user_id),
  usergroup: (e) => usergroupMention(e.usergroup_id, ""),
  team: (e) => h("span", { class: "mention" }, e.team_id),
  channel: (e) => channelMention(e.channel_id),
  broadcast: (e) => broadcast(e.range),
  emoji: (e) => emojiNode(e.name, e.unicode),
  color: (e) => h("span", { class: "color" }, h("span", { class: "swatch", style: { "--color": e.value } }), e.value),
  date: (e) => dateNode(e.timestamp, e.format, e.url, e.fallback),
};

function styled(node, style) {
  for (const [name, tag] of [["code", "code"], ["bold", "b"], ["italic", "i"], ["strike", "s"], ["underline", "u"], ["highlight", "mark"], ["client_highlight", "mark"]]) {
    if (style?.[name]) node = h(tag, {}, node);
  }
  return node;
}

// Elements.

export function renderElement(element, blockID, scene) {
  if (element.type === "image") return picture(element);
  const draw = elements[element.type];
  return draw ? draw(element, blockID, scene) : h("span", { class: "unknown" }, `Element “${element.type}” has no picture here`);
}

const tags = (element, blockID) => ({ testid: "element", actionId: element.action_id, blockId: blockID, elementType: element.type });

const elements = {
  button: (e, blockID, scene) => {
    if (e.visible_to_user_ids?.length && !e.visible_to_user_ids.includes(names.me())) return null;
    const face = e.url ? [plainText(e.text), h("span", { class: "sr-only" }, " (opens a page)")] : plainText(e.text);
    return actor(e, blockID, scene, { class: ["button", e.style && `button-${e.style}`], face, value: e.value, after: e.url && (() => window.open(e.url, "_blank", "noopener,noreferrer")) });
  },
  icon_button: (e, blockID, scene) => actor(e, blockID, scene, { class: ["button button-quiet"], face: [icon("trash"), h("span", { class: "sr-only" }, plainText(e.text))], value: e.value }),
  workflow_button: (e, blockID, scene) => actor(e, blockID, scene, { class: ["button", e.style && `button-${e.style}`], face: plainText(e.text) }),
  feedback_buttons: (e, blockID, scene) => h("span", { class: "feedback" }, [["👍", e.positive_button], ["👎", e.negative_button]].map(([face, side]) =>
    actor(e, blockID, scene, { class: ["button button-quiet"], face: h("span", { role: "img", "aria-label": side.accessibility_label ?? unescape(side.text.text), title: unescape(side.text.text) }, face), value: side.value }))),
  overflow: (e, blockID, scene) => overflow(e, blockID, scene),
  checkboxes: (e, blockID, scene) => choices(e, blockID, scene, "checkbox"),
  radio_buttons: (e, blockID, scene) => choices(e, blockID, scene, "radio"),
  datepicker: (e, blockID, scene) => field(e, blockID, scene, { type: "date", initial: e.initial_date }),
  timepicker: (e, blockID, scene) => field(e, blockID, scene, { type: "time", initial: e.initial_time }),
  datetimepicker: (e, blockID, scene) => field(e, blockID, scene, {
    type: "datetime-local", initial: e.initial_date_time && localMinute(e.initial_date_time), read: (text) => (text ? Math.floor(new Date(text).getTime() / 1000) : null) }),
  plain_text_input: (e, blockID, scene) => field(e, blockID, scene, { type: e.multiline ? "textarea" : "text", initial: e.initial_value, minlength: e.min_length, maxlength: e.max_length ?? 3000 }),
  rich_text_input: (e, blockID, scene) => field(e, blockID, scene, {
    type: "textarea", read: (text) => (text ? { type: "rich_text", elements: [{ type: "rich_text_section", elements: [{ type: "text", text }] }] } : null) }),
  email_text_input: (e, blockID, scene) => field(e, blockID, scene, { type: "email", initial: e.initial_value }),
  url_text_input: (e, blockID, scene) => field(e, blockID, scene, { type: "url", initial: e.initial_value }),
  number_input: (e, blockID, scene) => field(e, blockID, scene, { type: "number", initial: e.initial_value, min: e.min_value, max: e.max_value, step: e.is_decimal_allowed ? "any" : "1" }),
  file_input: () => h("span", { class: "unknown" }, "Files can't be chosen in this local Slack."),
};
for (const [kind, source] of [["static", null], ["users", "users"], ["conversations", "channels"], ["channels", "channels"], ["external", null]]) {
  elements[`${kind}_select`] = (e, blockID, scene) => select(e, blockID, scene, optionsOf(e, source));
  elements[`multi_${kind}_select`] = (e, blockID, scene) => multiSelect(e, blockID, scene, optionsOf(e, source));
}

const localMinute = (seconds) => { const d = new Date(seconds * 1000); return new Date(d - d.getTimezoneOffset() * 60_000).toISOString().slice(0, 16); };

// actor is a button that sends its action and shows what became of it: a
// spinner until the app acknowledges, a warning when it does not.
function actor(element, blockID, scene, { class: className, face, value, after }) {
  const label = element.accessibility_label;
  const mark = h("span", { class: "button-mark" });
  const button = h("button", { type: "button", class: className, "aria-label": label, dataset: tags(element, blockID) }, h("span", { class: "button-face" }, face), mark);
  const wrap = h("span", { class: "button-wrap" }, button);
  const key = `act/${blockID}/${element.action_id}`;
  const show = (state, sentence) => {
    button.dataset.state = state;
    button.setAttribute("aria-busy", String(state === "busy"));
    mark.replaceChildren(...(state === "busy" ? [spinner("Waiting for the app")] : state === "failed" ? [icon("warning")] : []));
    wrap.querySelector(".button-note")?.remove();
    if (sentence) wrap.append(h("span", { class: "button-note", role: "status", dataset: { testid: "action-note" } }, icon("warning"), sentence));
  };
  const past = scene.draft.get(key);
  if (past) show(past.state, past.sentence);
  button.addEventListener("click", async () => {
    if (button.dataset.state === "busy") return;
    if (element.confirm && !(await confirmed(element.confirm))) return;
    after?.();
    show("busy");
    scene.draft.set(key, { state: "busy" });
    const sentence = complaint(await scene.act({ blockID, element, value }));
    scene.draft.set(key, sentence ? { state: "failed", sentence } : undefined);
    show(sentence ? "failed" : "idle", sentence);
    if (sentence) announce(sentence);
  });
  return wrap;
}

// needsValue: a button's value is the server's to know; sending one would be
// forging. Whatever is chosen or typed has to be sent.
export const needsValue = (element) => !["button", "icon_button", "workflow_button"].includes(element.type);

// complaint is what the person is told about an action that came to nothing.
export function complaint(answer) {
  if (answer.delivered === false && !answer.errors) return `${names.app()} is not connected.`;
  if (answer.acked === false && !answer.errors) return `${names.app()} didn't answer.`;
  return answer.ok ? null : answer.sentence ?? "That did not work.";
}

// confirmed asks the person, in the words of a confirm object.
export async function confirmed(confirm) {
  const answer = await dialog("confirm", (close) => h("form", { method: "dialog", dataset: { testid: "confirm" } },
    h("header", { class: "dialog-head" }, h("h2", {}, plainText(confirm.title))),
    h("div", { class: "dialog-body text" }, textObject(confirm.text)),
    h("footer", { class: "dialog-foot" },
      h("button", { type: "button", class: "button", dataset: { testid: "confirm-deny" }, on: { click: () => close(false) } }, plainText(confirm.deny)),
      h("button", { type: "button", class: ["button", confirm.style === "danger" ? "button-danger" : "button-primary"], dataset: { testid: "confirm-ok" }, on: { click: () => close(true) } }, plainText(confirm.confirm)))));
  return answer === true;
}

function overflow(element, blockID, scene) {
  const note = h("span", {});
  const toggle = iconButton("more", "More actions", { class: "button button-more", dataset: tags(element, blockID) });
  const take = async (option) => {
    if (element.confirm && !(await confirmed(element.confirm))) return;
    if (option.url) window.open(option.url, "_blank", "noopener,noreferrer");
    note.replaceChildren(spinner("Waiting for the app"));
    const sentence = complaint(await scene.act({ blockID, element, value: option.value }));
    note.replaceChildren(...(sentence ? [h("span", { class: "button-note", role: "status" }, icon("warning"), sentence)] : []));
    if (sentence) announce(sentence);
  };
  const items = () => element.options.map((option) => ({ label: plainText(option.text), detail: option.description && textObject(option.description), value: option.value, take: () => take(option) }));
  return h("span", { class: "button-wrap" }, makeMenu(toggle, items, "More actions"), note);
}

// remembered reads and writes what a person entered into an element.
function remembered(element, blockID, scene, initial) {
  const key = `${blockID}/${element.action_id}`;
  if (!scene.draft.has(key) && initial !== undefined && initial !== null) scene.draft.set(key, initial);
  return { get: () => scene.draft.get(key), set: (value) => scene.draft.set(key, value) };
}

// changed sends the action of an element that acts when its value changes.
// In an input block it acts only if the block asks for that.
async function changed(element, blockID, scene, value, box) {
  if (scene.silent?.has(blockID)) return;
  if (element.confirm && !(await confirmed(element.confirm))) return;
  box.classList.add("busy");
  const sentence = complaint(await scene.act({ blockID, element, value }));
  box.classList.remove("busy");
  box.querySelector(".button-note")?.remove();
  if (sentence) box.append(h("span", { class: "button-note", role: "status" }, icon("warning"), sentence));
}

function optionsOf(element, source) {
  if (source) return [{ options: names.list(source).map((item) => ({ value: item.id, text: { type: "plain_text", text: item.label, emoji: false } })) }];
  if (element.option_groups) return element.option_groups;
  return [{ options: element.options ?? [] }];
}

function initialOf(element) {
  return element.initial_option?.value ?? element.initial_user ?? element.initial_conversation ?? element.initial_channel ?? null;
}

function select(element, blockID, scene, groups) {
  const memory = remembered(element, blockID, scene, initialOf(element));
  const face = (option) => h("option", { value: option.value, selected: memory.get() === option.value }, unescape(option.text.text));
  const box = h("span", { class: "select" });
  const control = h("select", { "aria-label": unescape(element.placeholder?.text) || "Choose", dataset: tags(element, blockID), on: { change: () => {
    memory.set(control.value || null);
    changed(element, blockID, scene, control.value || null, box);
  } } },
  h("option", { value: "" }, unescape(element.placeholder?.text) || "Choose an option"),
  groups.map((group) => (group.label ? h("optgroup", { label: unescape(group.label.text) }, group.options.map(face)) : group.options.map(face))));
  box.append(control, icon("chevron"));
  if (element.type.includes("external")) box.append(h("span", { class: "muted small" }, "Its options come from the app; this local Slack doesn't ask for them."));
  return box;
}

function multiSelect(element, blockID, scene, groups) {
  const initial = element.initial_options?.map((option) => option.value) ?? element.initial_users ?? element.initial_conversations ?? element.initial_channels;
  return tickList(element, blockID, scene, groups.flatMap((group) => group.options), "checkbox", initial, "multi");
}

function choices(element, blockID, scene, kind) {
  const initial = kind === "radio" ? (element.initial_option ? [element.initial_option.value] : undefined) : element.initial_options?.map((option) => option.value);
  return tickList(element, blockID, scene, element.options, kind, initial, "");
}

// tickList is checkboxes and radio buttons: the value is a list of option
// values, for radio buttons the one.
function tickList(element, blockID, scene, options, kind, initial, className) {
  const memory = remembered(element, blockID, scene, kind === "radio" ? initial?.[0] : initial);
  const name = `${scene.name}/${blockID}/${element.action_id}`;
  const box = h("fieldset", { class: ["ticks", className], dataset: tags(element, blockID) });
  const picked = () => [].concat(memory.get() ?? []);
  box.append(h("legend", { class: "sr-only" }, unescape(element.placeholder?.text) || "Options"), ...options.map((option) => h("label", { class: "tick" },
    h("input", { type: kind, name, value: option.value, checked: picked().includes(option.value), on: { change: () => {
      const values = [...box.querySelectorAll("input:checked")].map((input) => input.value);
      memory.set(kind === "radio" ? values[0] ?? null : values);
      changed(element, blockID, scene, memory.get(), box);
    } } }),
    h("span", { class: "tick-text" }, textObject(option.text), option.description && h("span", { class: "muted small" }, textObject(option.description))))));
  return box;
}

// field is every element in which something is typed or picked.
function field(element, blockID, scene, { type, initial, read = (text) => text || null, ...limits }) {
  const memory = remembered(element, blockID, scene, initial);
  const shared = { class: "field", placeholder: unescape(element.placeholder?.text) || null, autofocus: element.focus_on_load, dataset: tags(element, blockID), ...limits };
  const control = type === "textarea" ? h("textarea", { rows: "4", ...shared }) : h("input", { type, autocomplete: "off", ...shared });
  const value = memory.get();
  control.value = type === "datetime-local" && typeof value === "number" ? localMinute(value) : value?.elements ? value.elements[0].elements[0].text : value ?? "";
  const box = h("span", { class: "field-box" }, control);
  control.addEventListener("input", () => memory.set(read(control.value)));
  const when = element.dispatch_action_config?.trigger_actions_on ?? ["on_enter_pressed"];
  const picks = type === "date" || type === "time" || type === "datetime-local";
  if (picks || when.includes("on_character_entered")) control.addEventListener("change", () => changed(element, blockID, scene, memory.get(), box));
  else control.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && type !== "textarea" && !scene.silent?.has(blockID)) { event.preventDefault(); changed(element, blockID, scene, memory.get(), box); }
  });
  return box;
}

function inputBlock(b, scene) {
  scene.silent ??= new Set();
  if (!b.dispatch_action) scene.silent.add(b.block_id);
  const control = renderElement(b.element, b.block_id, scene);
  const error = scene.errors?.[b.block_id];
  const id = `${scene.name}-${b.block_id}`.replace(/[^\w-]/g, "_");
  // The label names the control, whatever name it would have by itself; the hint and the error describe it.
  const target = control.querySelector?.("input:not([type=checkbox]):not([type=radio]), textarea, select") ?? (control.localName === "fieldset" ? control : null);
  if (target) {
    target.id = id;
    target.removeAttribute("aria-label");
    target.setAttribute("aria-labelledby", `${id}-label`);
    target.querySelector?.("legend")?.remove();
    if (!b.optional && target !== control) target.setAttribute("aria-required", "true");
    const described = [error && `${id}-error`, b.hint && `${id}-hint`].filter(Boolean).join(" ");
    if (described) target.setAttribute("aria-describedby", described);
    if (error) target.setAttribute("aria-invalid", "true");
  }
  return [
    h("label", { class: "input-label", id: `${id}-label`, for: target && target !== control ? id : null }, plainText(b.label), b.optional && h("span", { class: "muted" }, " (optional)")),
    control,
    error && h("div", { class: "input-error", id: `${id}-error`, role: "alert", dataset: { testid: "input-error" } }, icon("warning"), isolated(error)),
    b.hint && h("div", { class: "muted small hint", id: `${id}-hint` }, plainText(b.hint)),
  ];
}
