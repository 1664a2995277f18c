//go:build (linux && !amd64 && !arm64) || darwin || dragonfly || freebsd || netbsd || openbsd || windows

package filelock

import (
	"context"
	"sync/atomic"
)

// interrupter is always nil here. How a signal's action is laid out in memory differs between architectures and
// systems. So waits in the kernel could not be ended, and all waits poll.
type interrupter struct{}

func newInterrupter() *interrupter { return nil }

func newSleeper(context.Context, *interrupter, *atomic.Int32) waiter { return poller{} }
