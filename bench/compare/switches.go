package compare

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// switching is how long it is watched who runs.
const switching = 400 * time.Millisecond

// switches counts wake-ups where there is no server: how many of many waiting processes the kernel has let run because
// of one release. Only Linux tells.
func (s *subject) switches(ctx context.Context, row *Row) error {
	if _, err := os.Stat("/proc/self/task"); err != nil {
		row.Woken = isNone("only Linux tells how often a process ran")
		return nil
	}
	s.Say("  " + s.label + ": wake-ups")
	client, err := s.open(ctx, "", 0)
	if err != nil {
		return err
	}
	held, err := client.Lock(ctx, crowdLock)
	if err != nil {
		return errors.Join(err, client.Close())
	}
	var waiters []*holder
	defer func() {
		for _, h := range waiters {
			h.end()
		}
	}()
	for range s.Waiters {
		h, err := hold(ctx, order{URL: s.url(""), Name: crowdLock}, true)
		if err != nil {
			return errors.Join(err, client.Close())
		}
		waiters = append(waiters, h)
		if err := pause(ctx, stagger); err != nil {
			return err
		}
	}
	calm, errCalm := ran(ctx, waiters, func() error { return pause(ctx, 2*beforeRelease) }, func() error { return nil })
	woken, errWoken := ran(ctx, waiters, func() error { return nil }, func() error { return held.Unlock(ctx) })
	if err := errors.Join(errCalm, errWoken, client.Close()); err != nil {
		return err
	}
	row.Woken = Cell{Values: []float64{float64(max(0, woken-calm))}}
	if calm > 0 {
		row.Woken.Why = fmt.Sprintf("%d of %d ran in as long before the release, and are taken off", calm, s.Waiters)
	}
	return nil
}

// ran counts the processes that ran after what is done.
func ran(ctx context.Context, waiters []*holder, first, do func() error) (int, error) {
	if err := first(); err != nil {
		return 0, err
	}
	before := make([]int64, len(waiters))
	for i, h := range waiters {
		before[i] = runs(h.PID())
	}
	if err := do(); err != nil {
		return 0, err
	}
	if err := pause(ctx, switching); err != nil {
		return 0, err
	}
	n := 0
	for i, h := range waiters {
		if runs(h.PID()) > before[i] {
			n++
		}
	}
	return n, nil
}

// runs is how often threads of a process have given up the processor by themselves: at least once after each wake-up.
func runs(pid int) (sum int64) {
	files, _ := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/status") // the pattern is well formed
	for _, file := range files {
		text, _ := os.ReadFile(file) // a thread may have ended
		for line := range strings.Lines(string(text)) {
			if value, ok := strings.CutPrefix(line, "voluntary_ctxt_switches:"); ok {
				n, _ := strconv.ParseInt(strings.TrimSpace(value), 10, 64) // 0 for what is no number
				sum += n
			}
		}
	}
	return sum
}
