package interlock

import "context"

// decline gives back a hold that its owner never got to know. The caller holds Client.mu.
func (l *Lease) decline() {
	l.owner.remove(l)
	if l.ended() != nil {
		return
	}
	l.dropMinHold()
	if left := l.giveUp(l.m.c.now()); !left.none() {
		go func() { _ = left.await(l.m.c.hard, unlockGrace) }() // counted as background by giveUp
	}
}

// disown takes the MinHold off l: nobody got to know it.
func (l *Lease) disown() {
	c := l.m.c
	c.lock()
	defer c.unlock()
	if l.ended() == nil {
		l.dropMinHold()
	}
}

// giveBack is Unlock of what nobody got to know.
func (l *Lease) giveBack(ctx context.Context) error {
	l.disown()
	if ctx.Err() == nil {
		bounded, cancel := context.WithTimeout(ctx, l.m.c.opts.CloseTimeout)
		defer cancel()
		return l.Unlock(bounded)
	}
	if !l.m.c.spawn(func() { _ = l.Unlock(l.m.c.hard) }) {
		return ErrClosed // Close has given it back
	}
	return nil
}
