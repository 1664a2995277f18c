package run

import (
	"context"
	"errors"
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
