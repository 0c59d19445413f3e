package ledger

import "fmt"

// A ProblemKind says what is wrong with a row.
type ProblemKind string

const (
	BadFile   ProblemKind = "file"   // the database says of itself that it is damaged
	BadGap    ProblemKind = "gap"    // rows are missing
	BadTime   ProblemKind = "time"   // it is earlier than the row before it
	BadColumn ProblemKind = "column" // a column was changed: the row's hash doesn't cover it, and the next row's does
	BadHash   ProblemKind = "hash"   // the stored hash was changed: the next row builds on another one
	BadChain  ProblemKind = "chain"  // it doesn't follow from the row before it
	BadBody   ProblemKind = "body"   // the body was changed
	BadEvent  ProblemKind = "event"  // the kind is unknown, or the body can't be read
	BadClaims ProblemKind = "claims" // the claims kept beside the events aren't those that the events make
	BadRun    ProblemKind = "run"    // the event may not happen where it stands
	BadHead   ProblemKind = "head"   // it isn't the row that the journal is known to have had
)

// A Problem is the first thing that doesn't fit.
type Problem struct {
	Seq  int64 // the row
	Kind ProblemKind
	What string
}

// Error makes a Problem an error, for those who find one where they didn't look for it.
func (p Problem) Error() string {
	if p.Seq == 0 {
		return p.What
	}
	return fmt.Sprintf("row %d: %s", p.Seq, p.What)
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
