// Watch: news of elections and latches, by a push. scripts/watch.lua keeps the watchers, scripts/tell.lua tells them,
// and notices.go passes the pushes on to here.

package redislock

import (
	"context"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/interlock-go/interlock/driver"
)

var _ driver.Watcher = (*Driver)(nil)

const (
	// watchBeat is how often a watcher registers again. With many watchers each waits longer, perWatcher for each of
	// them, so that all together cost the server no more than a few thousandths of its time.
	watchBeat     = 5 * time.Second
	perWatcher    = 40 * time.Millisecond
	mostWatchBeat = 40 * time.Second
	// watchLasts is how long a registration counts. It is three of the longest intervals, so that two of them may be
	// lost.
	watchLasts = 3 * mostWatchBeat
)

// watch is one Watch under way. Its channels are written by the reading goroutine and read by the watching one.
type watch struct {
	news  chan struct{} // buffer of one: something has changed
	again chan struct{} // buffer of one: something may have been missed
}

// stir wakes the watch. It does not block: one pending signal stands for all.
func (w *watch) stir(again bool) {
	to := w.news
	if again {
		to = w.again
	}
	select {
	case to <- struct{}{}:
	default: // it has been stirred and will see this
	}
}

// Watch calls changed after each change of key, until ctx or the driver ends; it blocks until then. changed runs in the
// calling goroutine, and one call may stand for several changes. It also runs when a change may have been missed, so
// the caller looks for itself. Only elections and latches can be watched; other locks would pay for it with each
// operation, so they are driver.ErrUnsupported.
//
// It costs one round trip at its beginning and then one every five seconds, or every 40 where a thousand watch. Each
// change costs a message for each watcher.
func (d *Driver) Watch(ctx context.Context, key driver.Key, changed func()) error {
	if key.Kind != driver.KindElection && key.Kind != driver.KindLatch {
		return driver.ErrUnsupported
	}
	w := &watch{news: make(chan struct{}, 1), again: make(chan struct{}, 1)}
	what := string(key.Kind) + ":" + key.Name
	// Before it is registered with the server, so that the first push finds it.
	d.addWatch(what, w)
	defer d.dropWatch(what, w)
	_, slot := d.names.lock(key)
	listening := &slotListener{d: d, slot: slot}
	defer listening.stopListening()
	// The first registration counts as a miss: the caller may have looked before it.
	missed := true
	for {
		known, pause, err := d.register(ctx, listening, key)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case d.isClosed():
			return driver.ErrClosed
		case isFinal(err):
			return err // until somebody changes its set-up; the caller polls more often then
		case err == nil && (missed || !known):
			changed()
		}
		missed = err != nil
		if missed, err = d.await(ctx, w, pause, missed, changed); err != nil {
			return err
		}
	}
}

// await passes changes on until it is time to register again. It reports whether something may have been missed: after
// a broken connection, and while registrations fail.
func (d *Driver) await(
	ctx context.Context, w *watch, pause time.Duration, failing bool, changed func(),
) (missed bool, err error) {
	// While registrations fail, the next one comes sooner, and at a random time.
	if failing {
		pause = retry/2 + rand.N(retry)
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for {
		select {
		case <-w.news:
			changed()
		case <-w.again:
			return true, nil
		case <-timer.C:
			return failing, nil
		case <-ctx.Done():
			return false, ctx.Err()
		case <-d.closing:
			return false, driver.ErrClosed
		}
	}
}

// register asks the server to tell this driver of changes. It reports whether the server already did so until now, and
// when to register again. A random tenth is taken off, so that watchers do not all come together.
func (d *Driver) register(
	ctx context.Context, listening *slotListener, key driver.Key,
) (known bool, pause time.Duration, err error) {
	// In a Cluster the news come by a channel of the slot, so this process must listen to that first.
	way := "p"
	if d.conn.Sharded() {
		way = "s"
		if err := listening.listen(ctx); err != nil {
			return false, 0, err
		}
	}
	answer := d.conn.Call(ctx, &Call{
		Script: watchScript, Slot: listening.slot, Keys: []string{d.names.watchers(listening.slot, key)},
		Args: []string{way, d.channel, strconv.FormatInt(watchLasts.Milliseconds(), 10)},
	})
	n, known, err := parseAliveAnswer(answer)
	pause = min(max(watchBeat, time.Duration(n)*perWatcher), mostWatchBeat)
	return known, pause - rand.N(pause/10+1), err
}

// addWatch and dropWatch keep Driver.watches, which changed reads.
func (d *Driver) addWatch(what string, w *watch) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.watches == nil {
		d.watches = make(map[string]map[*watch]struct{})
	}
	if d.watches[what] == nil {
		d.watches[what] = make(map[*watch]struct{})
	}
	d.watches[what][w] = struct{}{}
}

func (d *Driver) dropWatch(what string, w *watch) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.watches[what], w)
	if len(d.watches[what]) == 0 {
		delete(d.watches, what)
	}
}

// changed tells all watches of a lock or latch. The reading goroutine calls it.
func (d *listener) changed(what string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for w := range d.watches[what] {
		w.stir(false)
	}
}

// mayBeWatched replaces the script of a change by the one that also tells the watchers, if the kind of lock can be
// watched.
func (d *Driver) mayBeWatched(c *Call, key driver.Key, telling *Script) {
	if key.Kind != driver.KindElection {
		return
	}
	c.Script = telling
	c.Keys = append(slices.Clone(c.Keys), d.names.watchers(c.Slot, key))
}
