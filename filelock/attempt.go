//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd || windows

package filelock

import (
	"context"
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/driver"
)

// The table of requests by ID: an Acquire under way, then a hold. It makes requests idempotent, and it is where Undo
// and Close reach an Acquire that waits.

// errUndone ends the wait of an Acquire that is undone.
var errUndone = errors.New("the request was undone")

// attempt is one request: an Acquire under way, then a hold. Its fields are guarded by Driver.mu.
type attempt struct {
	key   driver.Key
	ended error              // why the Acquire under way must not end in a hold, or nil
	wait  context.CancelFunc // ends its wait in the line; nil while it is not in the line
	done  chan struct{}      // closed when the Acquire is over; made by whoever first waits for that

	file  *lockFile // set when it has become a hold
	grant driver.Grant
}

func (a *attempt) isHold() bool { return a.file != nil }

// stop keeps an Acquire under way from becoming a hold. On a hold it does nothing. The caller holds Driver.mu.
func (a *attempt) stop(why error) {
	if a.isHold() || a.ended != nil {
		return
	}
	a.ended = why
	if a.wait != nil {
		a.wait()
	}
}

// over returns a channel that is closed when the Acquire is over. The caller holds Driver.mu.
func (a *attempt) over() <-chan struct{} {
	if a.done == nil {
		a.done = make(chan struct{})
	}
	return a.done
}

// begin registers the request. If the same request already has a grant, begin returns that and no attempt.
func (d *Driver) begin(ctx context.Context, r *driver.Request) (*attempt, driver.Grant, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for {
		if d.closed {
			return nil, driver.Grant{}, driver.ErrClosed
		}
		if d.gone.Has(r.ID) {
			return nil, driver.Grant{}, errGone(r.Key)
		}
		a := d.attempts[r.ID]
		switch {
		case a == nil:
			a = &attempt{key: r.Key}
			d.attempts[r.ID] = a
			d.running.Add(1)
			return a, driver.Grant{}, nil
		case a.isHold():
			return nil, a.grant, nil
		}
		// The same request came twice at once: the second answers what the first will, or tries itself if that fails.
		over := a.over()
		d.mu.Unlock()
		select {
		case <-over:
		case <-ctx.Done():
		}
		d.mu.Lock()
		if err := ctx.Err(); err != nil {
			return nil, driver.Grant{}, err
		}
	}
}

// mayWait notes how to end the wait that is about to begin, or says why it must not begin.
func (d *Driver) mayWait(a *attempt, cancel context.CancelFunc) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	a.wait = cancel
	return a.ended
}

// settle makes the attempt a hold on f, or ends it with err. A hold that was undone meanwhile, or whose driver was
// closed, is given back here. So undo and Close need only wait for this moment.
func (d *Driver) settle(r *driver.Request, a *attempt, f *lockFile, g driver.Grant, err error) (driver.Grant, error) {
	defer d.running.Done()
	d.mu.Lock()
	defer d.mu.Unlock()
	a.wait = nil
	if a.done != nil {
		close(a.done)
	}
	if err == nil && a.ended == nil {
		a.file, a.grant = f, g
		return g, nil
	}
	delete(d.attempts, r.ID)
	if f != nil {
		f.close()
	}
	switch {
	case a.ended == nil:
		return driver.Grant{}, err
	case errors.Is(a.ended, errUndone):
		return driver.Grant{}, errGone(r.Key)
	default:
		return driver.Grant{}, a.ended
	}
}

// errGone refuses an ID whose hold is over: it is never granted again.
func errGone(key driver.Key) error {
	return fmt.Errorf("%s %q: this request was released or undone: %w", key.Kind, key.Name, driver.ErrLost)
}
