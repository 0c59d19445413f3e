// What the page knows. One object, changed by app.js and read by the rest.
import { names } from "./text.js";

export const state = {
  workspace: null, // GET /_dev/workspace
  usergroups: [],
  me: null, // the id of the user who is played
  channel: null, // the id of the open channel
  thread: null, // the ts of the open thread's parent
  tab: "messages", // of a DM with the app: home | messages | about
  pane: "channel", // on a phone, what is in front: list | channel | thread
  messages: new Map(), // channel id → messages, oldest first
  replies: new Map(), // thread ts → messages, parent first
  views: [], // views of the user who is played
  unread: new Map(), // "user channel" → { unread, mine }: what came, and how much of it is for that user
  agents: new Map(), // "channel thread" → { title, prompts, prompt_title, session }
  uploads: new Map(), // composer key → files that are to be sent
  notices: new Map(), // channel id → sentences of the page itself, such as a command that failed
  sockets: null, // connections of the app; null until known
  live: false, // the event stream is open
  typing: new Map(), // "channel thread" → what the app says it is doing
  drafts: new Map(), // composer key → text
  tried: null, // the ts of a sentence that was tried: its thread opens when the app answers
};

export const user = (id) => state.workspace?.users.find((one) => one.id === id) ?? null;
export const channel = (id) => state.workspace?.channels.find((one) => one.id === id) ?? null;
export const app = () => state.workspace?.app ?? {};
export const bot = () => user(app().bot_user_id);
export const appName = () => bot()?.name ?? "The app";

// players are the users that a person can be: all but our bot and those who
// were deactivated.
export const players = () => (state.workspace?.users ?? []).filter((one) => one.kind !== "deactivated" && one.id !== app().bot_user_id);

// isMember says whether somebody is in a channel. A channel that lists nobody
// is open to all.
export const isMember = (one, id) => !one.members || one.members.includes(id);

// myChannels are those that the played user sees.
export const myChannels = () => (state.workspace?.channels ?? []).filter((one) => isMember(one, state.me));

// isAppDM says whether a channel is the conversation with the app.
export const isAppDM = (one) => one?.kind === "im" && (one.members ?? []).includes(app().bot_user_id);

// partner is the other one in a DM.
export const partner = (one) => user((one?.members ?? []).find((id) => id !== state.me)) ?? bot();

// isAgent says whether the app's DM is a conversation with an agent.
export const isAgent = () => Boolean(app().agent_view || app().assistant_view);

// agentThread is what the app says about a conversation; without a thread, about
// the whole of a DM.
export const agentThread = (id, thread) => state.agents.get(`${id} ${thread ?? ""}`);

// shortcuts are the app's entries in the menu of a message.
export const shortcuts = () => (app().shortcuts ?? []).filter((one) => one.type === "message");

// unreadOf is what came for a user in a channel since they were there.
export const unreadOf = (who, id) => state.unread.get(`${who} ${id}`);

// waitingFor is how many messages are for a user, wherever they came.
export const waitingFor = (who) => [...state.unread].reduce((sum, [key, { mine }]) => (key.startsWith(`${who} `) ? sum + mine : sum), 0);

// hasBot says whether the app hears what is said in a channel.
export const hasBot = (one) => Boolean(one) && isMember(one, app().bot_user_id);

// asks says whether a message waits for somebody's answer: it offers a choice.
// A single button, such as one that stops something, is no question.
export const asks = (message) => (message.blocks ?? []).some((block) => block.type === "actions"
  && (block.elements.length > 1 || block.elements.some((element) => element.style === "primary")));

// channelMark is the icon that stands for a kind of channel, channelSign what is
// written in front of its name where there is no room for a picture.
export const channelMark = (one) => (one?.kind === "private" ? "lock" : "hash");
export const channelSign = (one) => (one?.kind === "channel" ? "#" : "");

export const channelName = (one) => (one?.kind === "im" ? partner(one)?.name ?? "direct message" : one?.name ?? "");

const kindWords = { guest: "guest", external: "other organization", bot: "bot", deactivated: "deactivated" };
export const kindWord = (one) => kindWords[one?.kind] ?? "";

names.user = user;
names.channel = channel;
names.usergroup = (id) => state.usergroups.find((one) => one.id === id) ?? null;
names.me = () => state.me;
names.app = appName;
names.list = (source) => (source === "users"
  ? (state.workspace?.users ?? []).filter((one) => one.kind !== "deactivated").map((one) => ({ id: one.id, label: one.name }))
  : myChannels().map((one) => ({ id: one.id, label: `${channelSign(one)}${channelName(one)}` })));
