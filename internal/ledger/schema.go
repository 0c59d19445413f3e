package ledger

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

const (
	applicationID = 0x41704a6c // "ApJl", in the file's header
	schemaVersion = 1          // PRAGMA user_version; a higher one is of a newer version of this program
)

// The tables. Claims and awaited can be computed from the events, and Verify does so.
//
//   - events: the journal; seq is dense.
//   - claims: which event made which claim. That it has a primary key is what makes things happen once only.
//   - awaited: the claims that something open waits for; a row leaves when its claim is made, so it stays short.
//   - scratch: one row that is written to find out whether the journal can be written.
const schema = `
CREATE TABLE events (
	seq       INTEGER PRIMARY KEY,
	time      INTEGER NOT NULL,
	session   TEXT NOT NULL,
	run       TEXT NOT NULL,
	call      TEXT NOT NULL,
	actor     TEXT NOT NULL,
	kind      TEXT NOT NULL,
	body      BLOB,
	body_hash BLOB NOT NULL,
	hash      BLOB NOT NULL
) STRICT;
CREATE INDEX events_run ON events (run) WHERE run <> '';
CREATE INDEX events_session ON events (session) WHERE session <> '';

CREATE TABLE claims (
	scope TEXT NOT NULL, a TEXT NOT NULL, b TEXT NOT NULL, c TEXT NOT NULL, d TEXT NOT NULL,
	seq   INTEGER NOT NULL,
	PRIMARY KEY (scope, a, b, c, d)
) STRICT, WITHOUT ROWID;
CREATE INDEX claims_seq ON claims (seq);

CREATE TABLE awaited (
	scope TEXT NOT NULL, a TEXT NOT NULL, b TEXT NOT NULL, c TEXT NOT NULL, d TEXT NOT NULL,
	seq   INTEGER NOT NULL,
	PRIMARY KEY (scope, a, b, c, d)
) STRICT, WITHOUT ROWID;

CREATE TABLE scratch (id INTEGER PRIMARY KEY CHECK (id = 1), n INTEGER NOT NULL) STRICT;
INSERT INTO scratch VALUES (1, 0);
`

// A connect function makes the connector for a data source name. Tests put faults between this package and the driver.
type connect func(dsn string) (driver.Connector, error)

func journalFile(dir string) string { return filepath.Join(dir, "journal.db") }

// writeDSN names the journal for the writer. There is no busy timeout: an append that can't have the write lock at once
// fails, and the one who waits for it decides what to do.
func writeDSN(dir string) string {
	return dsn(dir, url.Values{
		"mode":    {"rw"},
		"_pragma": {"busy_timeout(0)", "synchronous(full)", "journal_size_limit(16777216)", "trusted_schema(off)"},
	})
}

func readDSN(dir string) string {
	return dsn(dir, url.Values{"mode": {"ro"}, "_pragma": {"busy_timeout(250)", "query_only(on)", "trusted_schema(off)"}})
}

func dsn(dir string, q url.Values) string {
	u := url.URL{Scheme: "file", Path: journalFile(dir), RawQuery: q.Encode()}
	return u.String()
}

// openDB opens a pool of at most n connections, which stay open.
func openDB(c connect, dsn string, n int) (*sql.DB, error) {
	connector, err := c(dsn)
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(n)
	db.SetMaxIdleConns(n)
	return db, nil
}

// createFile makes an empty file that only its owner may read. SQLite gives the files beside it the same mode.
func createFile(dir string) error {
	f, err := os.OpenFile(journalFile(dir), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if errors.Is(err, os.ErrExist) {
		// Not opened: closing any descriptor of the file would take SQLite's locks on it away from this process.
		return os.Chmod(journalFile(dir), 0o600)
	}
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close(), syncDir(dir))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// A querier is a connection, a pool or a transaction.
type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// checkVersion tells whether the file is a journal that this version can work with; fresh: it is still empty.
func checkVersion(ctx context.Context, q querier) (fresh bool, err error) {
	var id, version, tables int64
	const query = `SELECT (SELECT application_id FROM pragma_application_id), (SELECT user_version FROM pragma_user_version),
		(SELECT count(*) FROM sqlite_schema)`
	if err := q.QueryRowContext(ctx, query).Scan(&id, &version, &tables); err != nil {
		return false, err
	}
	switch {
	case id == 0 && version == 0 && tables == 0:
		return true, nil
	case id != applicationID:
		return false, ErrNotJournal
	case version > schemaVersion:
		return false, fmt.Errorf("%w (format %d, this one knows %d): update approvalbot, or choose another data directory", ErrNewer, version, schemaVersion)
	case version < schemaVersion:
		return false, fmt.Errorf("%w: format %d was never released", ErrNotJournal, version)
	}
	return false, nil
}

// prepareFile turns an empty file into a journal and checks any other.
func prepareFile(ctx context.Context, conn *sql.Conn) error {
	fresh, err := checkVersion(ctx, conn)
	if err != nil {
		return err
	}
	var mode string
	if err := conn.QueryRowContext(ctx, `PRAGMA journal_mode = wal`).Scan(&mode); err != nil {
		return err
	}
	if mode != "wal" {
		return fmt.Errorf("the file system can't hold a write-ahead log (journal mode is %s); keep the data directory on a local disk", mode)
	}
	if !fresh {
		return nil
	}
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // does nothing after the commit
	for _, s := range []string{schema, fmt.Sprintf(`PRAGMA application_id = %d`, applicationID), fmt.Sprintf(`PRAGMA user_version = %d`, schemaVersion)} {
		if _, err := tx.ExecContext(ctx, s); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// code is SQLite's extended result code; 0 if err isn't the database's.
func code(err error) int {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code()
	}
	return 0
}

// isUnique tells whether a uniqueness constraint failed.
func isUnique(err error) bool {
	c := code(err)
	return c == sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY || c == sqlite3.SQLITE_CONSTRAINT_UNIQUE
}

// isDamage tells whether the database says of itself that it is damaged.
func isDamage(err error) bool { return code(err)&0xff == sqlite3.SQLITE_CORRUPT }
