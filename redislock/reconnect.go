// What the portable layer is told of reconnections, so that it finds out at once what a server has forgotten.
// notices.go hears of them.

package redislock

import (
	"time"

	"github.com/interlock-go/interlock/driver"
)

var _ driver.Reconnector = (*Driver)(nil)

// reconnectPause is the least time between two calls of those who heed reconnections. A server that breaks connections
// again and again, and a Cluster whose slots move, must not make a client renew all the time.
const reconnectPause = 250 * time.Millisecond

// reconnections is who heeds them, and when they were told last. Driver.mu guards it.
type reconnections struct {
	heed  map[*func()]struct{}
	told  time.Time
	timer *time.Timer // nil unless they are about to be told
}

// OnReconnect has f called when there is a new connection in place of one that has ended; see [driver.Reconnector].
func (d *Driver) OnReconnect(f func()) (stop func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	r := &d.reconnections
	if r.heed == nil {
		r.heed = make(map[*func()]struct{})
	}
	r.heed[&f] = struct{}{}
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(r.heed, &f)
	}
}

// reconnected has them told soon, in a goroutine of its own: whoever hears of a new connection must not block. The
// caller holds Driver.mu.
func (d *Driver) reconnected() {
	r := &d.reconnections
	if len(r.heed) == 0 || r.timer != nil || d.isClosed() {
		return
	}
	r.timer = time.AfterFunc(max(0, time.Until(r.told.Add(reconnectPause))), d.tellReconnected)
}

// tellReconnected tells them, without Driver.mu.
func (d *Driver) tellReconnected() {
	d.mu.Lock()
	r := &d.reconnections
	r.timer, r.told = nil, time.Now()
	all := make([]func(), 0, len(r.heed))
	for f := range r.heed {
		all = append(all, *f)
	}
	d.mu.Unlock()
	for _, f := range all {
		f()
	}
}
