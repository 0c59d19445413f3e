// The control plane: one function per route, and the stream of events.

async function call(method, path, body) {
  let response;
  try {
    response = await fetch(path, {
      method,
      headers: body === undefined ? {} : { "Content-Type": "application/json" },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch {
    return { ok: false, sentence: "The local Slack does not answer. Is it still running?" };
  }
  try {
    const answer = await response.json();
    if (answer.ok === undefined) answer.ok = response.ok;
    if (!answer.ok && answer.error) answer.sentence = answer.message ? `${answer.message} (${answer.error})` : answer.error;
    return answer;
  } catch {
    return { ok: false, sentence: `The local Slack answered with HTTP ${response.status}.` };
  }
}

const query = (parameters) => new URLSearchParams(Object.entries(parameters).filter(([, value]) => value)).toString();

export const workspace = () => call("GET", "/_dev/workspace");
export const sockets = () => call("GET", "/_dev/sockets");
export const messages = (channel, thread_ts) => call("GET", "/_dev/messages?" + query({ channel, thread_ts }));
export const sendMessage = (message) => call("POST", "/_dev/messages", message);
export const editMessage = (reference) => call("POST", "/_dev/messages/edit", reference);
export const deleteMessage = (reference) => call("POST", "/_dev/messages/delete", reference);
export const join = (membership) => call("POST", "/_dev/channels/join", membership);
export const act = (action) => call("POST", "/_dev/actions", action);
export const views = (user) => call("GET", "/_dev/views?" + query({ user }));
export const submitView = (id, body) => call("POST", `/_dev/views/${encodeURIComponent(id)}/submit`, body);
export const closeView = (id, body) => call("POST", `/_dev/views/${encodeURIComponent(id)}/close`, body);
export const actInView = (id, body) => call("POST", `/_dev/views/${encodeURIComponent(id)}/actions`, body);
export const command = (body) => call("POST", "/_dev/commands", body);
export const openTab = (user, tab) => call("POST", "/_dev/home", { user, tab });
export const shortcut = (body) => call("POST", "/_dev/shortcuts", body);
export const agentThreads = (user) => call("GET", "/_dev/assistant?" + query({ user }));
export const startAssistant = (body) => call("POST", "/_dev/assistant", body);
export const stopAgent = (reference) => call("POST", "/_dev/assistant/stop", reference);
export const calls = (after) => call("GET", "/_dev/calls?" + query({ after }));

// events follows the server for as long as the page lives. EventSource
// reconnects by itself; whatever happened in between is fetched again by
// whoever handles onOpen.
export function events({ onOpen, onLost, onEvent }) {
  const source = new EventSource("/_dev/events");
  source.onopen = onOpen;
  source.onerror = () => {
    onLost();
    // A browser gives up on an answer that is no event stream (a proxy, a
    // server that is just going down). We don't.
    if (source.readyState === EventSource.CLOSED) setTimeout(() => events({ onOpen, onLost, onEvent }), 2000);
  };
  source.onmessage = (message) => {
    let event;
    try { event = JSON.parse(message.data); } catch { return; }
    onEvent(event);
  };
}

// latest makes a function that runs at most once at a time: calls that come
// while it runs lead to one more run at the end. A burst of events is one fetch.
export function latest(work) {
  const running = new Map();
  return function run(key = "") {
    const entry = running.get(key);
    if (entry) { entry.again = true; return entry.promise; }
    const fresh = { again: false };
    fresh.promise = (async () => {
      try {
        do { fresh.again = false; await work(key); } while (fresh.again);
      } finally { running.delete(key); }
    })();
    running.set(key, fresh);
    return fresh.promise;
  };
}
