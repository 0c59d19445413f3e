// Package audit reads the journal for people who were not there: what was asked, what was decided, by whom, what was done,
// and whether the model knows. It writes nothing to the journal, and needs nothing but the journal: a run reads the same
// years later as on the day.
//
//	one run      Read ── Reading ──┬── Show    text for a terminal
//	                               └── Report  one page of HTML that needs nothing else
//	all events   Export ── JSON Lines, the chain verified on the way
//	the proof    Checks ── what lies outside the chain: the requests to models, the renderings in Slack
//
// # Invariants
//
//   - What leaves here has passed the redactor, but for an export that was asked for as it is. What others wrote (models,
//     tools, people's names) is made visible: no control character reaches a terminal, no markup a page.
//   - Every view of a denial is made from the same fields of the same event, tool_finished: state, source and reason.
//   - Memory does not grow with the journal. Of one run, all is in memory.
//   - Bodies that were erased are said to be erased, with who erased them and when; nothing is guessed in their place.
package audit
