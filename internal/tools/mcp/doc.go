// Package mcp makes tools of what MCP servers offer.
//
// # The life of a server
//
// A [Config] names servers: a program that is started and talked to over its standard input and output, or an address
// that is talked to over streamable HTTP. [Servers.Run] gives each one a goroutine of its own, which is the only one that
// starts, lists, restarts and ends it:
//
//	starting ──▶ up ──────▶ starting again, after a while that grows
//	   │         │ ▲              ▲
//	   │         └─┘ listed again │ ended, hung, talked nonsense
//	   └──────────────────────────┘ did not come up
//
// Whatever becomes of it is [Options.Publish]ed: the tools that it has, or none. A server that doesn't come up keeps
// nobody else waiting for longer than a start may take ([Servers.Settled]); its tools are missing, and
// [Servers.Status] says why.
//
// # What a server says is a claim
//
// A server names its tools, describes them, and says what they do. Nothing of that is believed further than it can be
// checked:
//
//   - A name becomes one that model providers accept, in a way that no second tool can have it too; the original stands
//     on the card.
//   - Hints that would have a call allowed unasked (readOnlyHint, and the denials of destructiveHint and openWorldHint)
//     count only for a server that the operator marked with "trust": true. Every other tool counts as one that changes
//     things, destructively, and reaches beyond the workspace, which is also what MCP assumes of a tool that says nothing.
//   - A tool whose definition can't be used, or could be used against us, is left out, and the others stay.
//   - Definitions, results and what it writes to its log are bounded, and made valid UTF-8.
//   - It gets nothing from us that its calls don't carry: an environment of its own, no sampling, no elicitation, no
//     roots.
//
// # The life of a call
//
// A call goes out once and is never repeated: not after a server ended in the middle of it, which leaves its outcome
// unknown (OUTCOME_UNKNOWN), and not when the server asks for it. It ends with the server's answer, with its time limit
// (TIMEOUT), or with its context (ABORTED); in the last two cases the server is told, and what it does with that is not
// known. Just before it goes out, the definition of its tool is compared with the one that the call was made for.
package mcp
