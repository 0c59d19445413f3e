// Package devslack is a local Slack: one workspace, spoken to by the real Web
// API and Socket Mode protocols, with a control plane through which tests and
// a browser page play its people. Unmodified official clients work against it,
// and it is as strict as Slack is: what it accepts, Slack accepts, as far as
// that is known.
//
// # One state, one lock
//
// [Server] holds the whole workspace under one mutex, and nothing waits while
// holding it. A change is written to the state file first and made then
// (commit, apply), so that what was answered is there after a crash; reading
// the file back makes the same changes again. Ids, tokens, channels, messages
// and files are kept. Ephemerals, views, trigger ids, response URLs and what
// people picked in messages are not, as they don't outlive a client of Slack.
//
// # Time
//
// All times come from package time, all goroutines belong to the server and
// end before Close returns, and [Pipe] takes the place of the network: so the
// whole server runs in a testing/synctest bubble, in fake time.
//
// # Delivery
//
// Every payload is a delivery. Its envelope goes to one connection, in turn.
// It must be acknowledged within three seconds, on any connection. An event
// that isn't is delivered again at once, a minute later and five minutes
// later, with the same event_id, another envelope_id, and a retry_attempt; the
// same goes for an attempt at which no connection was open. A click or a
// command is never delivered again: the person sees a warning.
//
// # Paths
//
//	/api/METHOD             Web API; other methods answer unknown_method
//	/link/?ticket=…         Socket Mode, from apps.connections.open
//	/actions/…, /commands/…, /app/… response URLs
//	/_upload/…, /files-pri/ files
//	/archives/…             permalinks: they lead to the page
//	/, /_page/…             the page
//	/_dev/…                 the control plane
//
// # Control plane
//
// JSON in, JSON out; refusals are {"ok":false,"error":code,"message":…} with a
// status of 400 or 404. Page and control plane answer only under loopback
// names, the listener's address and Options.Hosts, refuse requests of other
// web pages, and take bodies only as application/json. That keeps other pages
// out; it is no protection from other programs of this machine.
//
//	GET  /_dev/workspace                 {team, users, channels, usergroups, app}
//	GET  /_dev/usergroups                {usergroups}
//	GET  /_dev/sockets                   {connections}
//	GET  /_dev/messages?channel=&thread_ts=
//	POST /_dev/messages                  {user, channel, text, thread_ts?, files?: [{name, content (base64), mimetype?}]} -> {ok, ts}
//	POST /_dev/messages/edit             {user, channel, ts, text}
//	POST /_dev/messages/delete           {user, channel, ts}
//	POST /_dev/reactions                 {user, channel, ts, name}
//	POST /_dev/channels                  {name, kind?: channel|private, members} -> {ok, channel}
//	POST /_dev/channels/join, …/leave    {user, channel}
//	POST /_dev/actions                   {user, channel, ts, action_id, block_id?, value?, forge?} -> {ok, delivered, acked, ack_ms}
//	GET  /_dev/views?user=               {views}: open modals, the visible one first, then the Home tab
//	POST /_dev/views/ID/submit           {user, values?} -> {ok, response_action?, errors?, …}
//	POST /_dev/views/ID/close            {user}
//	POST /_dev/views/ID/actions          {user, action_id, value?}
//	POST /_dev/commands                  {user, channel, command, text?}
//	POST /_dev/shortcuts                 {user, channel, ts, callback_id}; a global one without channel and ts
//	POST /_dev/home                      {user, tab?: home|messages}
//	GET  /_dev/assistant?user=           {threads}: titles, suggested prompts and what the app says it is doing
//	POST /_dev/assistant                 {user, channel?} -> {ok, channel, thread_ts}: begins a thread with the assistant
//	POST /_dev/assistant/stop            {user, channel, ts}: of the thread
//	POST /_dev/envelopes                 {type, payload}: any envelope, delivered once
//	GET  /_dev/calls?after=              {calls}: what went over the wire, tokens left out
//	POST /_dev/faults                    see [Fault]; DELETE removes them all
//	GET  /_dev/events                    server-sent events: what changed, to be fetched
//
// Bots write by POST /_dev/messages, too: the user deploybot is an app's bot
// (bot_id, bot_profile and user), weekly-report a workflow's (bot_message,
// bot_id and username, no user). Files are fetched from url_private_download
// with the bot token, if the app has files:read; everybody else is sent to a
// page to sign in, which is what Slack does.
//
// value forges a button's value (the button need not exist then), and chooses
// in a select; forge is merged into the payload. Each notice of /_dev/events
// is {"type": …} with message, message_changed, message_deleted or ephemeral
// {channel, ts, thread_ts, author, mentions: [user]}, view or view_closed {user, view_id, view_type},
// socket {connections}, typing {channel, thread_ts, status}, agent {channel,
// thread_ts} (its title, prompts or session), workspace (who is in which
// channel, or what the app is granted), or call {seq, kind, name}.
package devslack
