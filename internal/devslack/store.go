package devslack

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
)

// record is one line of the state file: exactly one field is set.
type record struct {
	Seed    *seed          `json:"workspace,omitempty"`
	Channel *Channel       `json:"channel,omitempty"`
	Message *messageRecord `json:"message,omitempty"`
	Deleted *messageRecord `json:"deleted,omitempty"`
	File    *File          `json:"file,omitempty"`
}

type messageRecord struct {
	Channel string   `json:"channel"`
	TS      string   `json:"ts,omitempty"`      // of a deletion
	Message *Message `json:"message,omitempty"` // of a message
}

// store keeps the workspace in DIR/state.jsonl, one change a line, and what
// was uploaded in DIR/files. A change is written before it is answered, with
// one write call, so that it outlives the process (not the machine: nothing
// here is worth an fsync). Opening it reads the lines and rewrites the file
// without what was overtaken. With no directory it keeps nothing.
type store struct {
	dir  string
	file *os.File
	size int64
	lock *os.File
}

const stateName = "state.jsonl"

// openStore locks the directory and hands every stored record to apply.
func openStore(dir string, apply func(record)) (*store, error) {
	st := &store{dir: dir}
	if dir == "" {
		return st, nil
	}
	if err := os.MkdirAll(filepath.Join(dir, "files"), 0o700); err != nil {
		return nil, fmt.Errorf("devslack: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("devslack: %w", err)
	}
	st.lock = lock
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		lock.Close()
		return nil, fmt.Errorf("devslack: %s is in use by another process: %w", dir, err)
	}
	if err := st.load(apply); err != nil {
		st.close()
		return nil, err
	}
	return st, nil
}

func (st *store) load(apply func(record)) error {
	path := filepath.Join(st.dir, stateName)
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("devslack: %w", err)
	}
	defer f.Close()
	return readRecords(f, path, apply)
}

// readRecords reads lines up to the end. A last line without its newline was
// being written when the process died: it was never answered, so it is left
// out. Any other line that can't be read is an error.
func readRecords(r io.Reader, name string, apply func(record)) error {
	in := bufio.NewReader(r)
	for n := 1; ; n++ {
		line, err := in.ReadBytes('\n')
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("devslack: reading %s: %w", name, err)
		}
		var rec record
		if err := json.Unmarshal(line, &rec); err != nil {
			return fmt.Errorf("devslack: %s line %d can't be read (move the file away to start with a new workspace): %w", name, n, err)
		}
		apply(rec)
	}
}

// rewrite replaces the file by these records and goes on from there.
func (st *store) rewrite(records []record) error {
	if st.dir == "" {
		return nil
	}
	var buf bytes.Buffer
	for _, rec := range records {
		buf.Write(encode(rec))
		buf.WriteByte('\n')
	}
	path := filepath.Join(st.dir, stateName)
	if err := os.WriteFile(path+".new", buf.Bytes(), 0o600); err != nil {
		return fmt.Errorf("devslack: %w", err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("devslack: %w", err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("devslack: %w", err)
	}
	st.file, st.size = f, int64(buf.Len())
	return nil
}

// append writes one record. After a failed write the file is cut back to the
// last whole line, so that a later record doesn't end up behind a torn one.
func (st *store) append(rec record) error {
	if st.dir == "" {
		return nil
	}
	line := append(encode(rec), '\n')
	n, err := st.file.Write(line)
	if err != nil {
		if terr := st.file.Truncate(st.size); terr != nil {
			err = errors.Join(err, terr)
		}
		return fmt.Errorf("devslack: state not written: %w", err)
	}
	st.size += int64(n)
	return nil
}

func (st *store) writeFile(id string, content []byte) error {
	if st.dir == "" {
		return nil
	}
	if err := os.WriteFile(st.filePath(id), content, 0o600); err != nil {
		return fmt.Errorf("devslack: %w", err)
	}
	return nil
}

func (st *store) readFile(id string) ([]byte, error) {
	return os.ReadFile(st.filePath(id))
}

func (st *store) filePath(id string) string { return filepath.Join(st.dir, "files", id) }

func (st *store) close() error {
	var errs []error
	if st.file != nil {
		errs = append(errs, st.file.Close())
	}
	if st.lock != nil {
		errs = append(errs, st.lock.Close()) // lets go of the lock
	}
	return errors.Join(errs...)
}
