// Subscriptions to the slots of a Cluster. acquire.go and watch.go listen before the server may push to a slot; pushes
// arrive in notices.go. Elsewhere one channel, of driver.go, is enough.

package redislock

import "context"

// mostIdle is how many slots without a wait are still listened to, because the next wait in a slot often comes soon. A
// subscription costs two round trips.
const mostIdle = 256

// slotsInUse counts the waits for each slot of a Cluster. Driver.mu guards it.
type slotsInUse struct {
	waits map[uint16]int // may be 0: slots that are still listened to
	idle  []uint16       // slots whose count came to 0, the oldest first; one may be in use again, or listed twice
}

// listens reports whether the driver has asked to listen to the pushes of slot and not given that up. It can be wrong
// after a slot has moved; therefore listen is called before every wait.
func (d *Driver) listens(slot uint16) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, listens := d.slots.waits[slot]
	return listens
}

// slotListener is somebody who hears the pushes of one slot: an attempt, or a watch. Only one goroutine uses it.
type slotListener struct {
	d       *Driver
	slot    uint16
	listens bool // it counts in slotsInUse
}

// listen subscribes to the pushes of the slot if that is necessary and not yet done. It blocks until the server has
// confirmed the subscription: a grant that was pushed before would reach nobody.
//
// The count goes up before the subscription, so that stopListening of another listener cannot give the slot up in
// between.
func (l *slotListener) listen(ctx context.Context) error {
	d := l.d
	if !d.conn.Sharded() {
		return nil
	}
	if !l.listens {
		l.listens = true
		d.mu.Lock()
		if d.slots.waits == nil {
			d.slots.waits = make(map[uint16]int)
		}
		d.slots.waits[l.slot]++
		d.mu.Unlock()
	}
	// Listen returns at once if the subscription is there already.
	return d.conn.Listen(ctx, l.slot, d.names.shard(d.process, l.slot))
}

// stopListening ends what listen began. The slot's subscription ends only when mostIdle other slots have become idle
// since.
func (l *slotListener) stopListening() {
	if !l.listens {
		return
	}
	l.listens = false
	d := l.d
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.slots.waits[l.slot]--; d.slots.waits[l.slot] > 0 {
		return
	}
	d.slots.idle = append(d.slots.idle, l.slot)
	if len(d.slots.idle) <= mostIdle {
		return
	}
	oldest := d.slots.idle[0]
	d.slots.idle = d.slots.idle[1:]
	// The slot may have come into use again since it was listed.
	if waits, listens := d.slots.waits[oldest]; listens && waits == 0 {
		delete(d.slots.waits, oldest)
		d.conn.Unlisten(oldest, d.names.shard(d.process, oldest))
	}
}
