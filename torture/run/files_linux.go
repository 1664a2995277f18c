package run

import (
	"context"
	"time"

	"golang.org/x/sys/unix"
)

// closeFiles keeps a process from opening anything more for a while, and resets its connections to the server.
func (n *nemesis) closeFiles(ctx context.Context, victim *mate, lasts time.Duration) error {
	pid := victim.pid()
	var usual unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &usual); err != nil {
		return err
	}
	none := usual
	none.Cur = 1
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, &none, nil); err != nil {
		return err
	}
	if victim.proxy != nil {
		victim.proxy.Reset()
	}
	sleep(ctx, lasts)
	return unix.Prlimit(pid, unix.RLIMIT_NOFILE, &usual, nil)
}
