package interlock

import (
	"context"

	"github.com/interlock-go/interlock/internal/core"
)

// Holds that were granted to a caller that never got to know. Its context had ended, or a panic or a part of a Multi
// got in the way. They are released without their MinHold, because nothing was done under them.

// disownHold takes the MinHold off l, because nobody got to know it.
func disownHold(l *core.Hold) {
	c := clientOfLock(l.Lock)
	c.lock()
	defer c.unlock()
	if l.Ended() == nil {
		l.DropMinHold()
	}
}

// giveBackHold is Unlock of such a hold, within CloseTimeout. If ctx has ended, it returns at once and the release goes on
// in the background.
func giveBackHold(ctx context.Context, l *core.Hold) error {
	disownHold(l)
	if ctx.Err() == nil {
		bounded, cancel := context.WithTimeout(ctx, clientOfLock(l.Lock).opts.CloseTimeout)
		defer cancel()
		return unlock(bounded, l)
	}
	if !clientOfLock(l.Lock).spawn(func() { _ = unlock(clientOfLock(l.Lock).hard, l) }) {
		return ErrClosed // Close has released it
	}
	return nil
}
