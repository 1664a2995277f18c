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
	// watchBeat is how often a watcher asks to be told further. Where many watch, each asks the later the more there
	// are, after perWatcher for each, so that all together cost the server no more than a few thousandths of its time.
	watchBeat     = 5 * time.Second
	perWatcher    = 40 * time.Millisecond
	mostWatchBeat = 40 * time.Second
	// watchLasts is for how long it is told without asking again. Two of the rarest requests may be lost.
	watchLasts = 3 * mostWatchBeat
)

// watch is one Watch under way.
type watch struct {
	news  chan struct{} // has one place; something has changed
	again chan struct{} // has one place; something may have been missed
}

// stir wakes the watch. It does not block.
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

// Watch is told of changes by a push. Elections and latches can be watched; the other locks tell nobody, because it
// would make each of their operations dearer. It costs one round trip at its beginning and then one every five seconds,
// or every 40 where a thousand watch, and each change a message for each watcher.
func (d *Driver) Watch(ctx context.Context, key driver.Key, changed func()) error {
	if key.Kind != driver.KindElection && key.Kind != driver.KindLatch {
		return driver.ErrUnsupported
	}
	w := &watch{news: make(chan struct{}, 1), again: make(chan struct{}, 1)}
	what := string(key.Kind) + ":" + key.Name
	d.addWatch(what, w)
	defer d.dropWatch(what, w)
	_, slot := d.names.lock(key)
	place := &attempt{d: d, slot: slot} // listens to the slot's pushes, in a Cluster
	defer place.stopListening()
	missed := true
	for {
		known, pause, err := d.register(ctx, place, key)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case d.isClosed():
			return driver.ErrClosed
		case isFinal(err):
			return err // until somebody changes its set-up; who is not told looks more often
		case err == nil && (missed || !known):
			changed()
		}
		missed = err != nil
		if missed, err = d.await(ctx, w, pause, missed, changed); err != nil {
			return err
		}
	}
}

// await passes changes on until it is time to register again, and reports whether something may have been missed.
func (d *Driver) await(
	ctx context.Context, w *watch, pause time.Duration, failing bool, changed func(),
) (missed bool, err error) {
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

// register has the server tell us of changes. It reports whether the server did so until now, and when to ask again.
func (d *Driver) register(
	ctx context.Context, place *attempt, key driver.Key,
) (known bool, pause time.Duration, err error) {
	way := "p"
	if d.conn.Sharded() {
		way = "s"
		if err := place.listen(ctx); err != nil {
			return false, 0, err
		}
	}
	answer := d.conn.Call(ctx, &Call{
		Script: watchScript, Slot: place.slot, Keys: []string{d.names.watchers(place.slot, key)},
		Args: []string{way, d.channel, strconv.FormatInt(watchLasts.Milliseconds(), 10)},
	})
	n, known, err := among(answer)
	pause = min(max(watchBeat, time.Duration(n)*perWatcher), mostWatchBeat)
	return known, pause - rand.N(pause/10+1), err
}

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

// changed tells who watches.
func (d *listener) changed(what string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for w := range d.watches[what] {
		w.stir(false)
	}
}

// mayBeWatched makes the call of a script that changes a lock one that tells who watches, if it
// is of a kind that can be.
func (d *Driver) mayBeWatched(c *Call, key driver.Key, telling *Script) {
	if key.Kind != driver.KindElection {
		return
	}
	c.Script = telling
	c.Keys = append(slices.Clone(c.Keys), d.names.watchers(c.Slot, key))
}
