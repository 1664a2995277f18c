package shell

import (
	"context"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/core"
)

// Holds that were granted to a caller that never got to know. Its context had ended, or a panic or a part of a Multi
// got in the way. They are released without their MinHold, because nothing was done under them.

// disownHold takes the MinHold off l, because nobody got to know it.
func disownHold(l *core.Hold) {
	c := ClientOfLock(l.Lock)
	c.Lock()
	defer c.Unlock()
	if l.Ended() == nil {
		l.DropMinHold()
	}
}

// giveBackHold is Unlock of such a hold, within CloseTimeout. If ctx has ended, it returns at once and the release goes on
// in the background.
func GiveBackHold(ctx context.Context, l *core.Hold) error {
	disownHold(l)
	if ctx.Err() == nil {
		bounded, cancel := context.WithTimeout(ctx, ClientOfLock(l.Lock).Config.CloseTimeout)
		defer cancel()
		return Unlock(bounded, l)
	}
	if !ClientOfLock(l.Lock).spawn(func() { _ = Unlock(ClientOfLock(l.Lock).releaseCtx, l) }) {
		return driver.ErrClosed // Close has released it
	}
	return nil
}
