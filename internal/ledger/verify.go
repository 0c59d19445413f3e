package ledger

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
)

// A ProblemKind says what is wrong with a row.
type ProblemKind string

const (
	BadFile   ProblemKind = "file"   // the database says of itself that it is damaged
	BadGap    ProblemKind = "gap"    // rows are missing
	BadTime   ProblemKind = "time"   // it is earlier than the row before it
	BadColumn ProblemKind = "column" // a column was changed: the next row builds on the stored hash, which doesn't cover it
	BadHash   ProblemKind = "hash"   // the stored hash was changed: the next row builds on another one
	BadChain  ProblemKind = "chain"  // it doesn't follow from the row before it
	BadBody   ProblemKind = "body"   // the body was changed
	BadEvent  ProblemKind = "event"  // the kind is unknown, or the event can't be read
	BadClaims ProblemKind = "claims" // what is kept beside the events isn't what the events claim or leave open
	BadRun    ProblemKind = "run"    // the event may not happen where it stands
	BadErased ProblemKind = "erased" // a body is missing that no pruning erased
	BadHead   ProblemKind = "head"   // the journal is known to have had another row here
	BadCheck  ProblemKind = "check"  // what VerifyOptions.Check found
)

// A Problem is the first thing that doesn't fit.
type Problem struct {
	Seq  int64 // the row; 0 where it is about no row
	Kind ProblemKind
	What string
}

// Error makes a Problem an error, for those who find one where they didn't look for it.
func (p *Problem) Error() string {
	if p.Seq == 0 {
		return p.What
	}
	return fmt.Sprintf("row %d: %s", p.Seq, p.What)
}

// VerifyOptions are what Verify may be told.
type VerifyOptions struct {
	Head     *Head                   // a row that the journal is known to have had
	Progress func(done, total int64) // called now and then, in rows
	Check    func(Event) error       // what the caller can compute again itself: asked for each event, in order
}

// A Report is what Verify found.
type Report struct {
	Rows     int64    // rows that fit
	Total    int64    // rows when it began
	Head     Head     // the last row that fits
	Erased   int64    // bodies that were erased
	OpenRuns int      // runs that have not ended
	Problem  *Problem // nil: everything fits
}

// OK tells whether everything fits.
func (r Report) OK() bool { return r.Problem == nil }

// Verify reads the whole journal, up to where it ends when it is called, and computes again what can be: the chain of
// hashes, what the events claim and leave open, and whether each event could happen where it stands. It stops at the
// first thing that doesn't fit, and says so in the report; an error says that it couldn't go on reading.
func (r *Reader) Verify(ctx context.Context, o VerifyOptions) (Report, error) {
	v := verifier{r: r, o: o, open: map[Claim]int64{}, erased: newErasure(), rules: rules{runs: map[string]*ruleRun{}, grants: map[string]*ruleGrant{}}}
	err := v.run(ctx)
	v.report.OpenRuns = len(v.rules.runs)
	if p, ok := errors.AsType[*Problem](err); ok {
		v.report.Problem, err = p, nil
	} else if isDamage(err) {
		v.report.Problem, err = &Problem{Seq: v.report.Rows + 1, Kind: BadFile, What: err.Error()}, nil
	}
	return v.report, err
}

// A verifier is one Verify on its way.
type verifier struct {
	r      *Reader
	o      VerifyOptions
	report Report
	prev   row             // the last row that fits
	open   map[Claim]int64 // what the rows so far leave open, and which row did
	rules  rules

	erased   *erasure
	pruned   *Pruned // the last one
	prunedAt int64
}

// run checks everything; a [*Problem] is its error.
func (v *verifier) run(ctx context.Context) error {
	head, err := v.r.Head(ctx)
	if err != nil {
		return err
	}
	v.report.Total = head.Seq
	for after := int64(math.MinInt64); after < head.Seq; {
		page, err := v.r.query(ctx, `SELECT `+columns+` FROM events e WHERE seq > ? AND seq <= ? ORDER BY seq LIMIT ?`, after, head.Seq, pageRows)
		if err != nil {
			return err
		}
		if len(page) == 0 {
			break
		}
		after = page[len(page)-1].seq
		if err := v.page(ctx, page); err != nil {
			return err
		}
		if v.o.Progress != nil {
			v.o.Progress(v.report.Rows, v.report.Total)
		}
	}
	return v.end(ctx)
}

func (v *verifier) page(ctx context.Context, page []*row) error {
	claims, err := v.r.claims(ctx, `SELECT scope, a, b, c, d, seq FROM claims WHERE seq BETWEEN ? AND ? ORDER BY seq`,
		page[0].seq, page[len(page)-1].seq)
	if err != nil {
		return err
	}
	claimed := bySeq(claims)
	for _, row := range page {
		if err := v.row(ctx, row, claimed[row.seq]); err != nil {
			return err
		}
		v.prev = *row
		v.prev.body = nil
		v.report.Rows, v.report.Head = v.report.Rows+1, Head{Seq: row.seq, Hash: row.hash}
	}
	return nil
}

// row checks one row and what it claims.
func (v *verifier) row(ctx context.Context, r *row, claimed map[Claim]bool) error {
	if p := follows(&v.prev, r); p != nil {
		return v.diagnose(ctx, r, p)
	}
	if r.body != nil && sha256.Sum256(r.body) != r.bodyHash {
		return &Problem{Seq: r.seq, Kind: BadBody, What: "its body was changed"}
	}
	if h := v.o.Head; h != nil && h.Seq == r.seq && h.Hash != r.hash {
		return &Problem{Seq: r.seq, Kind: BadHead, What: fmt.Sprintf("its hash is %s, not that of the head that was given", r.hash)}
	}
	e, err := r.event()
	if err != nil {
		return &Problem{Seq: r.seq, Kind: BadEvent, What: err.Error()}
	}
	if r.body == nil {
		v.report.Erased++
		v.erased.add(r.seq)
	} else if err := sameClaims(e, claimed); err != nil {
		return err
	}
	if b, ok := e.Body.(*Pruned); ok {
		v.pruned, v.prunedAt = b, r.seq
	}
	if err := v.leavesOpen(ctx, e, claimed); err != nil {
		return err
	}
	if err := v.rules.check(e, func() (bool, error) { return v.ended(ctx, e) }); err != nil {
		return err
	}
	if v.o.Check != nil {
		if err := v.o.Check(e); err != nil {
			return &Problem{Seq: r.seq, Kind: BadCheck, What: err.Error()}
		}
	}
	return nil
}

// sameClaims compares what an event claims with what stands in the table of claims.
func sameClaims(e Event, claimed map[Claim]bool) error {
	want := e.Body.Claims(e)
	for _, c := range want {
		if !claimed[c] {
			return &Problem{Seq: e.Seq, Kind: BadClaims, What: fmt.Sprintf("its claim %s is missing", c)}
		}
	}
	for c := range claimed {
		if !slices.Contains(want, c) {
			return &Problem{Seq: e.Seq, Kind: BadClaims, What: fmt.Sprintf("the claim %s is not its own", c)}
		}
	}
	return nil
}

// leavesOpen keeps account of what is open behind e.
func (v *verifier) leavesOpen(ctx context.Context, e Event, claimed map[Claim]bool) error {
	for c := range claimed {
		delete(v.open, c)
	}
	for _, c := range awaits(e) {
		winner, made, err := v.r.claim(ctx, c)
		if err != nil {
			return err
		}
		if _, before := v.open[c]; !before && (!made || winner > e.Seq) {
			v.open[c] = e.Seq // the first that leaves it open
		}
	}
	return nil
}

// ended tells whether the event's run had ended before it.
func (v *verifier) ended(ctx context.Context, e Event) (bool, error) {
	seq, made, err := v.r.claim(ctx, ClaimRunEnd(e.Run))
	return made && seq < e.Seq, err
}

// end checks what can only be known after the last row.
func (v *verifier) end(ctx context.Context) error {
	if h := v.o.Head; h != nil && h.Seq > v.report.Total {
		return &Problem{Seq: v.report.Total + 1, Kind: BadHead, What: fmt.Sprintf("it is missing; the journal is known to have had row %d", h.Seq)}
	}
	strays, err := v.r.claims(ctx, `SELECT scope, a, b, c, d, seq FROM claims c
		WHERE (seq < 1 OR seq > ?) AND NOT EXISTS (SELECT 1 FROM events e WHERE e.seq = c.seq) LIMIT 1`, v.report.Total)
	if err != nil {
		return err
	}
	if len(strays) > 0 {
		return &Problem{Seq: strays[0].seq, Kind: BadClaims, What: fmt.Sprintf("there is no such row, but it has the claim %s", strays[0].Claim)}
	}
	if err := v.sameOpen(ctx); err != nil {
		return err
	}
	if err := v.sameErased(ctx); err != nil {
		return err
	}
	return v.r.integrity(ctx)
}

// sameOpen compares what the rows leave open with the list of what is awaited. Rows that were written since Verify began
// may have closed some of it.
func (v *verifier) sameOpen(ctx context.Context) error {
	listed, err := v.r.claims(ctx, `SELECT scope, a, b, c, d, seq FROM awaited WHERE seq <= ? ORDER BY seq`, v.report.Total)
	if err != nil {
		return err
	}
	missing := maps.Clone(v.open)
	for _, l := range listed {
		if missing[l.Claim] == l.seq {
			delete(missing, l.Claim)
			continue
		}
		e, ok, err := v.r.Event(ctx, l.seq)
		if err != nil {
			return err
		}
		if _, erased := e.Body.(*Erased); !ok || !erased {
			return &Problem{Seq: l.seq, Kind: BadClaims, What: fmt.Sprintf("it is listed as waiting for the claim %s and doesn't", l.Claim)}
		}
	}
	for c, seq := range missing {
		if winner, made, err := v.r.claim(ctx, c); err != nil {
			return err
		} else if !made || winner <= v.report.Total {
			return &Problem{Seq: seq, Kind: BadClaims, What: fmt.Sprintf("it waits for the claim %s and isn't listed so", c)}
		}
	}
	return nil
}

// errPruned says that bodies were erased while they were being verified.
var errPruned = errors.New("the journal was pruned while it was being verified; verify it again")

// sameErased checks that every body that is missing was erased by a pruning.
func (v *verifier) sameErased(ctx context.Context) error {
	p := v.erased.accounts(v.pruned, v.prunedAt)
	if p == nil {
		return nil
	}
	later, err := v.r.query(ctx, `SELECT `+columns+` FROM events e WHERE seq > ? AND kind = 'pruned' LIMIT 1`, v.report.Total)
	if err != nil {
		return err
	}
	if len(later) > 0 {
		return errPruned
	}
	return p
}

// diagnose says more about a row that doesn't follow, from what the next row builds on.
func (v *verifier) diagnose(ctx context.Context, r *row, p *Problem) error {
	if p.Kind != BadChain {
		return p
	}
	rows, err := v.r.query(ctx, `SELECT `+columns+` FROM events e WHERE seq = ?`, r.seq+1)
	if err != nil || len(rows) == 0 {
		return p
	}
	computed := chain(v.prev.hash, r)
	switch rows[0].hash {
	case chain(computed, rows[0]):
		return &Problem{Seq: r.seq, Kind: BadHash, What: "its stored hash was changed"}
	case chain(r.hash, rows[0]):
		return &Problem{Seq: r.seq, Kind: BadColumn, What: "one of its columns was changed, or rows before it were removed or exchanged"}
	}
	return p
}

// follows checks that r may come after prev, without regard to what is in its body.
func follows(prev, r *row) *Problem {
	switch {
	case r.seq != prev.seq+1:
		return &Problem{Seq: prev.seq + 1, Kind: BadGap, What: fmt.Sprintf("it is missing; row %d comes next", r.seq)}
	case r.time < prev.time:
		return &Problem{Seq: r.seq, Kind: BadTime, What: "it is earlier than the row before it"}
	case chain(prev.hash, r) != r.hash:
		return &Problem{Seq: r.seq, Kind: BadChain, What: "it doesn't follow from the row before it: one of the two was changed"}
	}
	return nil
}

// A storedClaim is a claim and the row that made it, or waits for it.
type storedClaim struct {
	Claim
	seq int64
}

// bySeq sorts claims by the rows that made them.
func bySeq(claims []storedClaim) map[int64]map[Claim]bool {
	sorted := map[int64]map[Claim]bool{}
	for _, c := range claims {
		if sorted[c.seq] == nil {
			sorted[c.seq] = map[Claim]bool{}
		}
		sorted[c.seq][c.Claim] = true
	}
	return sorted
}

// claims reads claims into memory.
func (r *Reader) claims(ctx context.Context, query string, args ...any) (claims []storedClaim, err error) {
	err = r.reading(ctx, func(ctx context.Context) error {
		stmt, err := r.stmt(ctx, query)
		if err != nil {
			return err
		}
		rows, err := stmt.QueryContext(ctx, args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var c storedClaim
			if err := rows.Scan(&c.Scope, &c.Parts[0], &c.Parts[1], &c.Parts[2], &c.Parts[3], &c.seq); err != nil {
				return err
			}
			claims = append(claims, c)
		}
		return rows.Err()
	})
	return claims, err
}

// claim finds which row made a claim.
func (r *Reader) claim(ctx context.Context, c Claim) (seq int64, made bool, err error) {
	claims, err := r.claims(ctx, `SELECT scope, a, b, c, d, seq FROM claims WHERE scope = ? AND a = ? AND b = ? AND c = ? AND d = ?`, c.args()...)
	if err != nil || len(claims) == 0 {
		return 0, false, err
	}
	return claims[0].seq, true, nil
}

// integrity lets the database check itself: that no page is damaged and that every index holds what its table does. It
// takes long on a large journal, so it can be broken off.
func (r *Reader) integrity(ctx context.Context) error {
	if err := r.reading(ctx, func(context.Context) error { return nil }); err != nil {
		return err
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	ctx, cancel := context.WithCancelCause(ctx)
	var watch sync.WaitGroup
	defer watch.Wait()
	defer cancel(nil)
	watch.Go(func() {
		select {
		case <-r.done:
			cancel(ErrClosed)
		case <-ctx.Done():
		}
	})
	var what string
	if err := r.db.QueryRowContext(ctx, `PRAGMA integrity_check(1)`).Scan(&what); err != nil {
		return cmp.Or(context.Cause(ctx), err)
	}
	if what != "ok" {
		return &Problem{Kind: BadFile, What: "the database is damaged: " + what}
	}
	return nil
}
