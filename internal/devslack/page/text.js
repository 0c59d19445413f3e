// Slack's text: mrkdwn, its <tokens>, emoji and dates, as DOM nodes.
import { h, icon } from "./dom.js";

// names looks up people, channels and groups; app.js fills it.
export const names = { user: () => null, channel: () => null, usergroup: () => null, me: () => "" };

const entities = { "&amp;": "&", "&lt;": "<", "&gt;": ">" };
export const unescape = (text) => String(text ?? "").replace(/&(?:amp|lt|gt);/g, (entity) => entities[entity]);

const emoji = {
  "+1": "👍", "-1": "👎", thumbsup: "👍", thumbsdown: "👎", white_check_mark: "✅", heavy_check_mark: "✔️", x: "❌", warning: "⚠️",
  no_entry: "⛔", no_entry_sign: "🚫", octagonal_sign: "🛑", hourglass: "⌛", hourglass_flowing_sand: "⏳", stopwatch: "⏱️", alarm_clock: "⏰",
  eyes: "👀", wave: "👋", robot_face: "🤖", gear: "⚙️", hammer_and_wrench: "🛠️", wrench: "🔧", lock: "🔒", unlock: "🔓", key: "🔑",
  rocket: "🚀", tada: "🎉", fire: "🔥", sparkles: "✨", star: "⭐", bulb: "💡", memo: "📝", page_facing_up: "📄", file_folder: "📁",
  mag: "🔍", link: "🔗", bell: "🔔", speech_balloon: "💬", raised_hand: "✋", ok_hand: "👌", pray: "🙏", clap: "👏", heart: "❤️",
  smile: "😄", slightly_smiling_face: "🙂", thinking_face: "🤔", sob: "😭", sweat_smile: "😅", joy: "😂", cry: "😢", skull: "💀",
  red_circle: "🔴", large_green_circle: "🟢", large_yellow_circle: "🟡", large_blue_circle: "🔵", white_circle: "⚪", black_circle: "⚫",
  arrow_right: "➡️", arrow_left: "⬅️", arrow_up: "⬆️", arrow_down: "⬇️", information_source: "ℹ️", question: "❓", exclamation: "❗",
  computer: "💻", floppy_disk: "💾", package: "📦", bug: "🐛", zap: "⚡", construction: "🚧", rotating_light: "🚨", shield: "🛡️", wastebasket: "🗑️",
};

export function emojiNode(name, unicode) {
  const points = unicode ? unicode.split("-").map((hex) => parseInt(hex, 16)) : [];
  const drawn = emoji[name] ?? (points.length && points.every((p) => p > 0 && p <= 0x10ffff) ? String.fromCodePoint(...points) : null);
  return drawn ? h("span", { class: "emoji", role: "img", "aria-label": name, title: `:${name}:` }, drawn) : `:${name}:`;
}

// plainText renders a plain_text object: no markup, entities decoded once,
// emoji names replaced unless it asks for none.
export function plainText(object) {
  const text = unescape(object?.text);
  if (object?.emoji === false) return isolated(text);
  return h("bdi", {}, text.split(/(:[a-z0-9_+-]+:)/g).map((part) => {
    const name = /^:([a-z0-9_+-]+):$/.exec(part)?.[1];
    return name && emoji[name] ? emojiNode(name) : part;
  }));
}

// isolated keeps a text with direction marks from reordering its neighbours.
export const isolated = (text) => h("bdi", {}, text);

export const textObject = (object) => (object?.type === "mrkdwn" ? mrkdwn(object.text, object.verbatim) : plainText(object));

// mrkdwn parses a text as Slack does: blocks of code and quotes line by line,
// then marks within a line. It returns nodes.
export function mrkdwn(text, verbatim = false) {
  const nodes = [];
  const parts = String(text ?? "").split(/```\n?([\s\S]*?)\n?```/g);
  parts.forEach((part, index) => {
    if (index % 2) nodes.push(h("pre", { class: "code" }, unescape(part)));
    else {
      // A code block stands on lines of its own; those breaks are not shown twice.
      const inner = part.replace(index > 0 ? /^\n/ : /^(?!)/, "").replace(index < parts.length - 1 ? /\n$/ : /(?!)$/, "");
      if (inner) nodes.push(...lines(inner, verbatim));
    }
  });
  return h("span", { class: "mrkdwn" }, nodes);
}

function lines(text, verbatim) {
  const nodes = [];
  let quote = null;
  text.split("\n").forEach((line, index) => {
    const quoted = /^(?:&gt;|>)\s?(.*)$/.exec(line);
    if (quoted) {
      if (!quote) nodes.push(quote = h("blockquote", { class: "quote" }));
      else quote.append(h("br"));
      quote.append(...inline(quoted[1], verbatim));
      return;
    }
    if (index > 0 && !quote) nodes.push(h("br"));
    quote = null;
    nodes.push(...inline(line, verbatim));
  });
  return nodes;
}

const marks = { "*": "b", _: "i", "~": "s" };

// inline walks one line: at every place it takes the first form that matches
// there, and else one character of plain text.
function inline(line, verbatim) {
  const nodes = [];
  let plain = "";
  const flush = () => { if (plain) { nodes.push(...bare(unescape(plain), verbatim)); plain = ""; } };
  for (let i = 0; i < line.length;) {
    const found = formAt(line, i, verbatim);
    if (!found) { plain += line[i++]; continue; }
    flush();
    nodes.push(found.node);
    i += found.length;
  }
  flush();
  return nodes;
}

function formAt(line, i, verbatim) {
  const rest = line.slice(i);
  let match;
  if ((match = /^<([^<>]+)>/.exec(rest))) return { node: token(match[1]), length: match[0].length };
  if ((match = /^`([^`]+)`/.exec(rest))) return { node: h("code", {}, unescape(match[1])), length: match[0].length };
  if ((match = /^:([a-z0-9_+-]+):/.exec(rest)) && emoji[match[1]]) return { node: emojiNode(match[1]), length: match[0].length };
  if ((match = /^([*_~])(\S|\S.*?\S)\1(?![\p{L}\p{N}])/u.exec(rest)) && !/[\p{L}\p{N}]$/u.test(line.slice(0, i))) {
    return { node: h(marks[match[1]], {}, inline(match[2], verbatim)), length: match[0].length };
  }
  return null;
}

// bare makes links of URLs that stand in the text, unless it is verbatim.
function bare(text, verbatim) {
  if (verbatim) return [text];
  return text.split(/(https?:\/\/[^\s<>|]+[^\s<>|.,;:!?)\]}'"])/g).map((part, index) => (index % 2 ? anchor(part, part) : part));
}

// token renders what stands in angle brackets.
function token(inner) {
  const bar = inner.indexOf("|");
  const body = bar < 0 ? inner : inner.slice(0, bar);
  const label = bar < 0 ? "" : unescape(inner.slice(bar + 1));
  if (body.startsWith("@")) return userMention(body.slice(1), label);
  if (body.startsWith("#")) return channelMention(body.slice(1), label);
  if (body.startsWith("!date^")) {
    const [, timestamp, format, link] = body.split("^");
    return dateNode(Number(timestamp), unescape(format), link && unescape(link), label);
  }
  if (body.startsWith("!subteam^")) return usergroupMention(body.slice("!subteam^".length), label);
  if (/^!(here|channel|everyone)$/.test(body)) return broadcast(body.slice(1));
  if (body.startsWith("!")) return h("span", {}, label || `<${body}>`);
  return anchor(unescape(body), label || unescape(body));
}

// here makes a link to a file of this local Slack work under the name by which
// the page was opened: the app may know it by another one (localhost, an
// address), and files open only for their own page.
function here(url) {
  try {
    const parsed = new URL(url);
    if (/^\/(files-pri|archives)\//.test(parsed.pathname) && parsed.port === location.port) return location.origin + parsed.pathname + parsed.search;
  } catch { /* not a URL: it stays what it is */ }
  return url;
}

// anchor is a link only for schemes that a browser opens harmlessly.
export function anchor(url, label) {
  url = here(url);
  if (!/^(https?|mailto|tel):/i.test(url)) return h("span", { class: "link-dead", title: url }, isolated(label));
  const place = permalink(url);
  if (place) return h("a", { href: place, title: url, dataset: { testid: "permalink" } }, isolated(label));
  return h("a", { href: url, target: "_blank", rel: "noopener noreferrer nofollow", title: url }, isolated(label));
}

// fileLink opens a file of a message beside the page.
export function fileLink(url, name) {
  if (!url) return isolated(name);
  return h("a", { href: here(url), target: "_blank", rel: "noopener noreferrer", title: name }, isolated(name));
}

// permalink is where a link to a message leads within this page; null for other
// links.
function permalink(url) {
  let parsed;
  try { parsed = new URL(url); } catch { return null; }
  const found = /^\/archives\/(\w+)(?:\/p(\d+)(\d{6}))?$/.exec(parsed.pathname);
  if (!found || parsed.origin !== location.origin) return null;
  const [, id, seconds, rest] = found;
  const thread = parsed.searchParams.get("thread_ts");
  return `#/${id}${thread ? `/${thread}` : ""}${seconds ? `@${seconds}.${rest}` : ""}`;
}

export function userMention(id, label) {
  const known = names.user(id);
  const me = id === names.me();
  return h("span", { class: ["mention", me && "mention-me"], dataset: { user: id } }, "@", isolated(known?.name ?? label ?? id));
}

export function channelMention(id, label) {
  return h("span", { class: "mention", dataset: { channel: id } }, names.channel(id)?.kind === "private" ? icon("lock") : "#", isolated(names.channel(id)?.name ?? (label || id)));
}

export function usergroupMention(id, label) {
  const known = names.usergroup(id);
  return h("span", { class: "mention", dataset: { usergroup: id } }, "@", isolated(known?.handle ?? (label.replace(/^@/, "") || id)));
}

export const broadcast = (range) => h("span", { class: "mention mention-me" }, `@${range}`);

const clock = { hour: "numeric", minute: "2-digit" };
const dateForms = {
  date_num: (d) => d.toLocaleDateString("sv-SE"),
  date_slash: (d) => d.toLocaleDateString(),
  date: (d) => d.toLocaleDateString(undefined, { month: "long", day: "numeric", year: "numeric" }),
  date_short: (d) => d.toLocaleDateString(undefined, { month: "short", day: "numeric", year: "numeric" }),
  date_long: (d) => d.toLocaleDateString(undefined, { weekday: "long", month: "long", day: "numeric", year: "numeric" }),
  time: (d) => d.toLocaleTimeString(undefined, clock),
  time_secs: (d) => d.toLocaleTimeString(undefined, { ...clock, second: "2-digit" }),
  ago: (d) => ago(d),
};
for (const name of ["date", "date_short", "date_long"]) dateForms[`${name}_pretty`] = (d) => pretty(d) ?? dateForms[name](d);
dateForms.day_divider_pretty = (d) => pretty(d) ?? dateForms.date_long(d);
dateForms.date_long_full = dateForms.date_long;

function pretty(date) {
  const days = Math.round((new Date(date).setHours(0, 0, 0, 0) - new Date().setHours(0, 0, 0, 0)) / 86_400_000);
  return { "-1": "yesterday", 0: "today", 1: "tomorrow" }[days];
}

function ago(date) {
  const seconds = (date - Date.now()) / 1000;
  const format = new Intl.RelativeTimeFormat(undefined, { numeric: "auto" });
  for (const [unit, size] of [["day", 86_400], ["hour", 3600], ["minute", 60]]) {
    if (Math.abs(seconds) >= size) return format.format(Math.round(seconds / size), unit);
  }
  return format.format(Math.round(seconds), "second");
}

// formatDate fills in a date format; unknown {words} stay as they are.
export function formatDate(timestamp, format) {
  const date = new Date(timestamp * 1000);
  if (Number.isNaN(date.getTime())) return null;
  return format.replace(/\{([a-z_]+)\}/g, (all, name) => dateForms[name]?.(date) ?? all);
}

export function dateNode(timestamp, format, link, fallback) {
  const text = formatDate(timestamp, format ?? "") ?? fallback ?? "";
  const date = new Date(timestamp * 1000);
  const time = h("time", { datetime: Number.isNaN(date.getTime()) ? undefined : date.toISOString(), title: Number.isNaN(date.getTime()) ? fallback : date.toLocaleString() }, text);
  return link && /^https?:/i.test(link) ? h("a", { href: link, target: "_blank", rel: "noopener noreferrer nofollow" }, time) : time;
}

// messageTime is how a message's time stands beside its author's name.
export function messageTime(ts, short = false) {
  const date = new Date(Number.parseFloat(ts) * 1000);
  const text = date.toLocaleTimeString(undefined, clock);
  return h("time", { class: "time", datetime: date.toISOString(), title: date.toLocaleString() }, short ? text.replace(/\s*[AP]M$/i, "") : text);
}

// dayOf names the day of a message for the line between days.
export function dayOf(ts) {
  const date = new Date(Number.parseFloat(ts) * 1000);
  const near = pretty(date);
  return near ? near[0].toUpperCase() + near.slice(1) : date.toLocaleDateString(undefined, { weekday: "long", month: "long", day: "numeric" });
}

// excerpt is the first line of a message for places where only a line fits.
export function excerpt(text, most = 80) {
  const points = [...unescape(text).replace(/\s+/g, " ").trim()];
  return points.length > most ? points.slice(0, most - 1).join("") + "…" : points.join("");
}
