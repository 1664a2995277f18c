package interlock

import "context"

// Holds that were granted to a caller that never got to know. Its context had ended, or a panic or a part of a Multi
// got in the way. They are released without their MinHold, because nothing was done under them.

// disown takes the MinHold off l, because nobody got to know it.
func (l *Lease) disown() {
	c := l.m.client()
	c.lock()
	defer c.unlock()
	if l.ended() == nil {
		l.dropMinHold()
	}
}

// giveBack is Unlock of such a hold, within CloseTimeout. If ctx has ended, it returns at once and the release goes on
// in the background.
func (l *Lease) giveBack(ctx context.Context) error {
	l.disown()
	if ctx.Err() == nil {
		bounded, cancel := context.WithTimeout(ctx, l.m.client().opts.CloseTimeout)
		defer cancel()
		return l.Unlock(bounded)
	}
	if !l.m.client().spawn(func() { _ = l.Unlock(l.m.client().hard) }) {
		return ErrClosed // Close has released it
	}
	return nil
}
