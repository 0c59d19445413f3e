package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"approvalbot/internal/ledger"
	"approvalbot/internal/tools"
)

// Definitions is what the journal says of how tools are and were defined that somebody else defines: those of MCP servers.
// A name stays and what is behind it changes, so people who approved a call of it are told when the next one is of another
// definition. It is derived from the journal and so outlives a restart. It is safe for concurrent use.
//
// What people allow in advance is allowed for a hash (approvals.Grants), and covers nothing once the tool has another.
type Definitions struct {
	ledger *ledger.Ledger

	mu       sync.Mutex
	tools    map[string]*defined
	approved map[string]string // hash of the definition that was approved last, by tool; nil until somebody asks
}

// defined is how one tool is and was defined.
type defined struct {
	now   string
	known map[string]json.RawMessage // definitions by hash
	since int64                      // Seq of the first
}

// LoadDefinitions reads what was recorded.
func LoadDefinitions(ctx context.Context, l *ledger.Ledger) (*Definitions, error) {
	d := &Definitions{ledger: l, tools: map[string]*defined{}}
	for e, err := range l.Read(ctx, 0, ledger.Filter{Kinds: []string{"tool_defined"}}) {
		if err != nil {
			return nil, fmt.Errorf("reading how tools were defined: %w", err)
		}
		if b, ok := e.Body.(*ledger.ToolDefined); ok {
			d.apply(e.Seq, b)
		}
	}
	return d, nil
}

func (d *Definitions) apply(seq int64, b *ledger.ToolDefined) {
	t := d.tools[b.Tool]
	if t == nil {
		t = &defined{known: map[string]json.RawMessage{}, since: seq}
		d.tools[b.Tool] = t
	}
	t.now, t.known[b.Hash] = b.Hash, b.Definition
}

// Record records the definitions of these tools, of each one that has another than it had last. Once it has returned nil
// they may be offered. One at a time records, so nothing is recorded twice in a row, and what comes back is recorded again.
func (d *Definitions) Record(ctx context.Context, set *tools.Set) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var events []ledger.Event
	for _, spec := range set.Specs() {
		hash, _ := set.Hash(spec.Name)
		b := &ledger.ToolDefined{Tool: spec.Name, Hash: hash}
		if t := d.tools[spec.Name]; t != nil {
			if t.now == hash {
				continue
			}
			b.Previous = t.now
		}
		var err error
		if b.Definition, err = spec.Definition(); err != nil {
			return fmt.Errorf("the definition of %s: %w", spec.Name, err)
		}
		if b.Previous != "" {
			b.Changed = changed(d.tools[spec.Name].known[b.Previous], b.Definition)
		}
		events = append(events, ledger.Event{Actor: ledger.System, Body: b})
	}
	if len(events) == 0 {
		return nil
	}
	written, err := d.ledger.Append(ctx, events...)
	if err != nil {
		return fmt.Errorf("recording how tools are defined: %w", err)
	}
	for _, e := range written {
		d.apply(e.Seq, e.Body.(*ledger.ToolDefined))
	}
	return nil
}

// parts are the members of a definition, and what they are to people.
var parts = []struct{ member, words string }{
	{"description", "its description"}, {"inputSchema", "its arguments"}, {"annotations", "what it says of its effects"},
}

// changed names the members in which two definitions differ.
func changed(from, to json.RawMessage) (members []string) {
	var a, b map[string]json.RawMessage
	if json.Unmarshal(from, &a) != nil || json.Unmarshal(to, &b) != nil {
		return nil
	}
	for _, p := range parts {
		if !bytes.Equal(a[p.member], b[p.member]) { // both are canonical
			members = append(members, p.member)
		}
	}
	return members
}

// note says to people that the tool is not defined as it was when they approved a call of it last; empty if it is, or if
// nobody ever did.
func (d *Definitions) note(ctx context.Context, tool, hash string) (string, error) {
	if d == nil {
		return "", nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	t := d.tools[tool]
	if t == nil || len(t.known) < 2 {
		return "", nil
	}
	if err := d.readApproved(ctx); err != nil {
		return "", err
	}
	last := d.approved[tool]
	if last == "" || last == hash {
		return "", nil
	}
	what := ""
	if members := changed(t.known[last], t.known[hash]); len(members) > 0 {
		what = ": " + list(members)
	}
	return "The definition of this tool changed since it was last approved" + what + ". Read this call as one of a new tool.", nil
}

// list names members of a definition in a sentence.
func list(members []string) string {
	var words []string
	for _, p := range parts {
		for _, m := range members {
			if m == p.member {
				words = append(words, p.words)
			}
		}
	}
	if n := len(words); n > 1 {
		return strings.Join(words[:n-1], ", ") + " and " + words[n-1]
	}
	return strings.Join(words, "")
}

// readApproved finds out which definitions people approved last. That is read once, when for the first time a tool is
// asked about whose definition has changed; from then on [Definitions.approve] keeps it up.
func (d *Definitions) readApproved(ctx context.Context) error {
	if d.approved != nil {
		return nil
	}
	since := int64(0) // the first of these tools was not approved before
	for _, t := range d.tools {
		if since == 0 || t.since < since {
			since = t.since
		}
	}
	approved, asks := map[string]string{}, map[string]*ledger.ApprovalRequested{}
	for e, err := range d.ledger.Read(ctx, since, ledger.Filter{Kinds: []string{"approval_requested", "approval_resolved"}}) {
		if err != nil {
			return fmt.Errorf("reading what was approved: %w", err)
		}
		switch b := e.Body.(type) {
		case *ledger.ApprovalRequested:
			if d.tools[b.Tool] != nil {
				asks[b.Approval] = b
			}
		case *ledger.ApprovalResolved:
			if q := asks[b.Approval]; q != nil && b.Type == ledger.Approved {
				d.keep(approved, q.Tool, q.ToolHash)
			}
			delete(asks, b.Approval)
		}
	}
	d.approved = approved
	return nil
}

// keep takes an approval in. What has a definition that was never recorded for the tool is of something else that has
// the same name: the action of another program.
func (d *Definitions) keep(approved map[string]string, tool, hash string) {
	if t := d.tools[tool]; t != nil && t.known[hash] != nil {
		approved[tool] = hash
	}
}

// approve takes note that people approved a call of the tool with this definition.
func (d *Definitions) approve(tool, hash string) {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.approved != nil { // else it is read when it is needed
		d.keep(d.approved, tool, hash)
	}
}
