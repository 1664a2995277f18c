package redislock

import "context"

// most idle slots that are still listened to, because the next wait in a slot is often soon.
const mostIdle = 256

// slotsInUse counts the waits for each slot of a Cluster. Guarded by Driver.mu.
type slotsInUse struct {
	waits map[uint16]int // also 0, of slots that are still listened to
	idle  []uint16       // those that had no wait at some moment, the oldest first
}

// listens reports whether the pushes of slot have been subscribed to and not been given up. It may be wrong after a
// slot has moved: listen is called before every wait.
func (d *Driver) listens(slot uint16) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, listens := d.slots.waits[slot]
	return listens
}

// listen subscribes to the pushes of the attempt's slot, if that is necessary and not yet done.
func (a *attempt) listen(ctx context.Context) error {
	d := a.d
	if !d.conn.Sharded() {
		return nil
	}
	if !a.listens {
		a.listens = true
		d.mu.Lock()
		if d.slots.waits == nil {
			d.slots.waits = make(map[uint16]int)
		}
		d.slots.waits[a.slot]++
		d.mu.Unlock()
	}
	return d.conn.Listen(ctx, a.slot, d.names.shard(d.process, a.slot))
}

// stopListening ends the attempt's part in that. The slot itself is given up when many others have been idle since.
func (a *attempt) stopListening() {
	if !a.listens {
		return
	}
	a.listens = false
	d := a.d
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.slots.waits[a.slot]--; d.slots.waits[a.slot] > 0 {
		return
	}
	d.slots.idle = append(d.slots.idle, a.slot)
	if len(d.slots.idle) <= mostIdle {
		return
	}
	oldest := d.slots.idle[0]
	d.slots.idle = d.slots.idle[1:]
	if waits, listens := d.slots.waits[oldest]; listens && waits == 0 {
		delete(d.slots.waits, oldest)
		d.conn.Unlisten(oldest, d.names.shard(d.process, oldest))
	}
}
