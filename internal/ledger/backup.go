package ledger

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	"modernc.org/sqlite"
)

// Backup writes a copy of the journal, as it is at one moment, to a file that only its owner may read. Others may go on
// writing the journal meanwhile. The copy is verified before it gets its name, so there is either a whole backup or none;
// the report is of the copy. A file that exists is not overwritten ([os.ErrExist]).
func (r *Reader) Backup(ctx context.Context, file string, o VerifyOptions) (Report, error) {
	file, err := filepath.Abs(file)
	if err != nil {
		return Report{}, err
	}
	if _, err := os.Lstat(file); err == nil {
		return Report{}, &os.PathError{Op: "backup", Path: file, Err: os.ErrExist}
	}
	head, err := r.Head(ctx)
	if err != nil {
		return Report{}, err
	}
	// In a directory of its own: the copy may be opened as a journal there, and on the same file system it can be linked.
	dir, err := os.MkdirTemp(filepath.Dir(file), ".backup-")
	if err != nil {
		return Report{}, err
	}
	report, err := r.backup(ctx, dir, file, head, o)
	return report, errors.Join(err, os.RemoveAll(dir))
}

func (r *Reader) backup(ctx context.Context, dir, file string, head Head, o VerifyOptions) (Report, error) {
	if err := r.copyTo(ctx, dir); err != nil {
		return Report{}, fmt.Errorf("copy the journal: %w", err)
	}
	if o.Head == nil && head.Seq > 0 {
		o.Head = &head // what was the last row before the copy was begun has to be in it
	}
	report, err := verifyDir(ctx, dir, o)
	if err != nil {
		return report, fmt.Errorf("read the copy: %w", err)
	}
	if !report.OK() {
		return report, fmt.Errorf("the copy doesn't verify, so it isn't kept: %w", report.Problem)
	}
	if err := syncFile(journalFile(dir)); err != nil {
		return report, err
	}
	// A link, not a renaming: it fails where a file of that name has appeared meanwhile.
	if err := os.Link(journalFile(dir), file); err != nil {
		return report, err
	}
	return report, syncDir(filepath.Dir(file))
}

// copyTo makes the copy on a connection of its own, since a reader's may write nothing, not even elsewhere.
func (r *Reader) copyTo(ctx context.Context, dir string) (err error) {
	if err := createFile(dir); err != nil {
		return err
	}
	db, err := openDB(sqlite.NewConnector, dsn(r.dir, url.Values{"mode": {"ro"}, "_pragma": {"busy_timeout(250)", "trusted_schema(off)"}}), 1)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	_, err = db.ExecContext(ctx, `VACUUM INTO ?`, journalFile(dir))
	return err
}

// verifyDir verifies the journal in dir.
func verifyDir(ctx context.Context, dir string, o VerifyOptions) (report Report, err error) {
	r, err := OpenReader(ctx, dir)
	if err != nil {
		return Report{}, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	return r.Verify(ctx, o)
}

func syncFile(name string) error {
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
