package ledger

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// lockDir takes the directory for this process. The lock is the operating system's and ends with the process, however
// that ends; what is written in the file only tells others who holds it.
func lockDir(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		defer f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, inUse(dir, f)
		}
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	holder := fmt.Sprintf("%d %s\n", os.Getpid(), time.Now().UTC().Format(time.RFC3339))
	if err := errors.Join(f.Truncate(0), writeAt(f, holder)); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func writeAt(f *os.File, s string) error {
	_, err := f.WriteAt([]byte(s), 0)
	return err
}

// inUse reads who holds the lock. The holder may be just about to write it.
func inUse(dir string, f *os.File) error {
	e := &InUseError{Dir: dir}
	text, err := io.ReadAll(io.LimitReader(f, 128))
	if err != nil {
		return e
	}
	var since string
	if _, err := fmt.Fscan(bytes.NewReader(text), &e.PID, &since); err != nil {
		return &InUseError{Dir: dir}
	}
	if e.Since, err = time.Parse(time.RFC3339, since); err != nil {
		return &InUseError{Dir: dir}
	}
	return e
}

// unlockDir gives the directory back. Nobody holds it from here on, so nobody is named in it.
func unlockDir(f *os.File) error { return errors.Join(f.Truncate(0), f.Close()) }
