// Burying: making sure that the server ends a session whose connection has ended here. release.go (died) starts it.

package sqlsession

import (
	"time"

	"github.com/interlock-go/interlock/enginekit"
)

// The pauses between two attempts to bury a connection. They double.
const (
	buryFirst = 2 * time.Millisecond
	buryMost  = time.Second
)

// bury makes sure that the server ends the session of a connection that has ended here. The server may not know of the
// end. It would keep the session's locks until it misses signs of life, or wait for one on nobody's behalf. Only when
// the server has no such session is anything of it said to be over. It runs in a goroutine of its own until then, or
// until Close.
func (d *Core) bury(c *Conn) {
	for pause := buryFirst; !d.isBuried(c); pause = min(2*pause, buryMost) {
		if !enginekit.Pause(d.base, pause) {
			return
		}
	}
	// Now, and not when the connection broke, nothing of these is left in the server.
	d.mu.Lock()
	defer d.mu.Unlock()
	for e := range c.holds {
		d.drop(e)
	}
}

// isBuried reports whether the server is known to have no such session, and otherwise has it ended, over a shared
// connection.
func (d *Core) isBuried(c *Conn) bool {
	word := make(chan bool, 1)
	d.OnShared(Job{
		Run:  func(shared *Conn) { word <- shared.session.Bury(c) },
		Dead: func(error) { word <- false },
	})
	select {
	case buried := <-word:
		return buried
	case <-d.base.Done():
		return false
	}
}
