package run

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/interlock-go/interlock/enginekit"
	"github.com/interlock-go/interlock/internal/servers"
	"golang.org/x/sys/unix"
)

// possible says why no run can be made on this system, or nil.
func possible() error { return nil }

// closeFiles keeps a process from opening anything more for a while, and resets its connections to the server.
func (n *nemesis) closeFiles(ctx context.Context, victim *process, lasts time.Duration) error {
	pid := victim.life().PID()
	var usual unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &usual); err != nil {
		return err
	}
	none := usual
	none.Cur = 1
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, &none, nil); err != nil {
		return err
	}
	victim.links.each((*servers.Proxy).Reset)
	enginekit.Pause(ctx, lasts)
	// that says it was killed meanwhile
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, &usual, nil); !errors.Is(err, unix.ESRCH) {
		return err
	}
	return nil
}

// keepCode keeps this program's file in memory, as far as the system allows that, until let is called. The workers are
// the same program. A process that came to a line of code for the first time would else wait there for the disk, and
// nobody could tell that from being late.
func keepCode() (let func(), err error) {
	file, err := os.Open("/proc/self/exe")
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // what is mapped stays
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	//nolint:gosec // small enough for both
	code, err := unix.Mmap(int(file.Fd()), 0, int(info.Size()), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	_ = unix.Mlock(code) // without the right to that it is as it was
	return func() { _ = unix.Munmap(code) }, nil
}
