package ledger

import (
	"errors"
	"fmt"
	"strings"
	"time"

	sqlite3 "modernc.org/sqlite/lib"
)

var (
	// ErrNotRecorded: the journal couldn't be written. The effect of what was to be recorded must not happen.
	ErrNotRecorded = errors.New("not recorded in the journal")

	// ErrClosed: the journal was closed.
	ErrClosed = errors.New("the journal is closed")

	// ErrNewer: the journal was written by a newer version of approvalbot.
	ErrNewer = errors.New("the journal was written by a newer version of approvalbot")

	// ErrNotJournal: the file is something else, or damaged at its very start.
	ErrNotJournal = errors.New("not a journal of approvalbot")

	// ErrNoJournal: there is no journal in the directory.
	ErrNoJournal = errors.New("there is no journal")
)

// A ConflictError says that a claim was made before: what was to be appended has happened already, or can't happen any
// more. Nothing of the append was written.
type ConflictError struct {
	Claim  Claim
	Winner Event // the event that made the claim
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("%s was taken by journal row %d (%s)", e.Claim, e.Winner.Seq, e.Winner.Kind())
}

// String is for people; claims are compared as values.
func (c Claim) String() string {
	parts := c.Parts[:]
	for len(parts) > 0 && parts[len(parts)-1] == "" {
		parts = parts[:len(parts)-1]
	}
	return fmt.Sprintf("%s %q", c.Scope, strings.Join(parts, " "))
}

// An InUseError says that another process holds the journal's directory.
type InUseError struct {
	Dir   string
	PID   int       // 0 where it couldn't be read
	Since time.Time // zero where it couldn't be read
}

func (e *InUseError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("the journal in %s is in use by another process", e.Dir)
	}
	return fmt.Sprintf("the journal in %s is in use by process %d since %s; stop that one first, or choose another data directory",
		e.Dir, e.PID, e.Since.Format(time.RFC3339))
}

// A DamagedError says that the end of the journal doesn't fit together, so that nothing may be added to it.
type DamagedError struct {
	Dir     string
	Problem Problem
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("the journal in %s is damaged: %s; `approvalbot audit verify` says more", e.Dir, &e.Problem)
}

// openError says which journal couldn't be opened.
func openError(dir string, err error) error {
	if _, ok := errors.AsType[*DamagedError](err); ok {
		return err
	}
	if code(err) == sqlite3.SQLITE_NOTADB {
		err = ErrNotJournal
	}
	if isDamage(err) {
		return &DamagedError{Dir: dir, Problem: Problem{Kind: BadFile, What: err.Error()}}
	}
	return fmt.Errorf("%s: %w", journalFile(dir), err)
}

// notRecorded makes cause an ErrNotRecorded.
func notRecorded(cause error) error {
	if cause == nil || errors.Is(cause, ErrNotRecorded) {
		return cause
	}
	return fmt.Errorf("%w: %w", ErrNotRecorded, cause)
}
