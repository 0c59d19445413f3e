//go:build !linux

package confine

import (
	"errors"
	"os"
)

// Available says why commands can't be confined here.
func Available() error {
	return errors.New("commands can only be confined on Linux, with Landlock")
}

// Harden does nothing here: this system lets no process read another's memory or environment without being asked.
func Harden() error { return nil }

func links(os.FileInfo) uint64 { return 1 }

func mountedElsewhere([]string) ([]string, error) { return nil, nil }
