//go:build (linux && !amd64 && !arm64) || darwin || dragonfly || freebsd || netbsd || openbsd || windows

package filelock

import (
	"context"
	"sync/atomic"
)

// interrupter is nil here: how a signal's action is laid out in memory differs from one architecture and system to the
// next, so waits in the kernel could not be ended.
type interrupter struct{}

func newInterrupter() *interrupter { return nil }

func newSleeper(context.Context, *interrupter, *atomic.Int32) waiter { return poller{} }
