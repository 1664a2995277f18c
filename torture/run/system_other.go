//go:build !linux

package run

import (
	"context"
	"fmt"
	"runtime"
	"time"
)

// possible says why no run can be made on this system.
func possible() error {
	return fmt.Errorf("a run needs Linux, and this is %s: what is done to processes, and the clock that all of them "+
		"share, is made with its means; the commands check, list and t0 work here too", runtime.GOOS)
}

// Nothing of what follows is reached.

func keepCode() (let func(), err error) { return nil, possible() }

func (*nemesis) closeFiles(context.Context, *process, time.Duration) error { return possible() }
