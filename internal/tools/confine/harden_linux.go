package confine

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Harden closes this process to others of the same user: its environment, memory and descriptors under /proc, and
// tracing. It leaves no core dump either. What it starts isn't concerned, and the superuser can still look.
func Harden() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("this process can't be closed to others of its user: %w", err)
	}
	return nil
}
