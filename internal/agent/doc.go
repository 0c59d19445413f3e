// Package agent works messages off: it asks the model, runs the tools that the model calls, and ends every run.
//
// # Life of a run
//
// A message that starts a run is journalled by [Agent.Receive] and waits for its session: a session works one message at
// a time, in the order of the journal. When its turn comes the message is taken (run_started) and worked off in rounds:
//
//	transcript (a fold of the journal) ── sample ── model_completed ──┬── no calls: the text is the answer, run_finished
//	        ▲                                                         └── calls, all at the same time, each:
//	        └──────────── all calls have their terminal state ◄───────────┐
//	                                                                      │
//	parse ── permission_decided ──┬── deny ───────────────────────────── finish(output-denied)
//	                              ├── ask ── approvals.Open … Wait ──┬── denied ── finish(output-denied)
//	                              │                                  └── approved ── decided once more ──┐
//	                              └── allow ─────────────────────────── tool_started ── the tool runs ── finish(output-…)
//
// Where a grant covers what would be asked (granted.go), the decision says so and is one append with tool_started.
//
// A run works with a profile (profile.go): instructions, model, tools, workspace and stricter settings of its place. One that
// can't be used ends the run; nothing falls back to another. Before run_started the files that people attached to what it
// will read are put into its workspace (attach.go), each once. Where people change a call's arguments (amend.go), they are
// judged by schema and policy as if the model had made them, and the tool's result tells the model. During a pause
// (pause.go) no message is taken and no call asks or starts that would have asked.
//
// # Invariants
//
//   - A tool is called in one place ([run.carryOut]), after its tool_started is on disk, with exactly the bytes whose
//     digest was recorded there and, if people were asked, approved.
//   - A call ends in one place ([Agent.finish]), once. What that event says is what the model gets, live and after a
//     restart; a denial is one of the three endings and no error of the run.
//   - The request to the model is always folded from the journal, never from memory, so it can be folded again. Where a
//     session has outgrown the model's context its older rounds are summarised, which is a step of the same fold.
//   - Only sampling is tried again, since a model that failed has done nothing. Each failed attempt is an event.
//   - A run ends after all its calls have. Interrupted is an ending, not a reason to try again.
//   - If the journal can't be written the run halts where it is: no further model call, no start. When it can be written
//     again, the run is ended as after a crash ([Agent.Recover]).
//
// # Owners
//
// The goroutine of [Agent.Run] owns the sessions' queues and every run's goroutine; a run's goroutine owns its calls'.
// Each waits for what it started.
package agent
