// The details of a conversation: what it, its members and the user groups are
// called by those who write settings and rules. In Slack the ids stand in a
// channel's details, a person's profile and a group's menu; here in one place.
import { h, icon, iconButton, dialog } from "./dom.js";
import { state, user, channelName, channelMark, channelSign, kindWord } from "./state.js";
import { isolated } from "./text.js";
import { avatar } from "./messages.js";

// copyButton copies an id, or selects it where the browser doesn't let us.
function copyButton(label, id, shown) {
  const button = h("button", { type: "button", class: "button button-small", "aria-label": label, title: label, dataset: { testid: "copy-id" } }, "Copy");
  const say = (word) => { button.textContent = word; button.setAttribute("aria-label", `${word}: ${label}`); };
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(id);
      say("Copied");
    } catch {
      getSelection().selectAllChildren(shown);
      say("Selected");
    }
  });
  return button;
}

function row({ face, name, more, id, copy }) {
  const shown = h("code", { class: "details-id" }, id);
  return h("li", { class: "details-row", dataset: { testid: "details-row", id } },
    face, h("span", { class: "details-words" }, h("b", {}, isolated(name)), more && h("span", { class: "muted small" }, " ", isolated(more))), shown, copyButton(`${copy} of ${name}`, id, shown));
}

const person = (one) => row({ face: avatar(one, "avatar-small"), name: one.name, more: kindWord(one), id: one.id, copy: "Copy member ID" });

const groupRow = (one) => row({ face: icon("people"), name: `@${one.handle}`, more: one.users.map((id) => user(id)?.name ?? id).join(", "), id: one.id, copy: "Copy group ID" });

// showDetails opens the details of a conversation, and resolves when they are closed.
export function showDetails(here) {
  const all = state.workspace.users;
  const members = here.members ?? all.map((one) => one.id);
  const section = (title, rows) => rows.length > 0 && h("section", {}, h("h3", {}, title), h("ul", {}, rows));
  return dialog("details", (close) => h("div", { class: "details-box", dataset: { testid: "details-dialog" } },
    h("header", { class: "dialog-head" }, h("h2", {}, here.kind === "im" ? null : icon(channelMark(here)), isolated(channelName(here))), iconButton("close", "Close", { dataset: { testid: "details-close" }, on: { click: () => close() } })),
    h("div", { class: "dialog-body" },
      h("p", { class: "muted small" }, "Settings and rules name people, user groups and channels by these ids."),
      section("Conversation", [row({ face: here.kind === "im" ? icon("people") : icon(channelMark(here)), name: channelSign(here) + channelName(here), id: here.id, copy: "Copy channel ID" })]),
      section("Members", all.filter((one) => members.includes(one.id)).map(person)),
      section("User groups", state.usergroups.map(groupRow)),
      section("Others in the workspace", all.filter((one) => !members.includes(one.id)).map(person)))));
}
