package sqlsession

import (
	"time"

	"github.com/interlock-go/interlock/enginekit"
)

const (
	buryFirst = 2 * time.Millisecond
	buryMost  = time.Second
)

// bury sees to it that the server ends the session of a connection that has ended here: it may not have heard of that,
// and would keep its locks until the server misses its signs of life, or wait for one on behalf of nobody.
func (d *Core) bury(c *Conn) {
	for pause := buryFirst; !d.isBuried(c); pause = min(2*pause, buryMost) {
		if !enginekit.Pause(d.base, pause) {
			return
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for e := range c.holds {
		d.drop(e)
	}
}

// isBuried reports whether the server is known to have no such session, and otherwise has it ended.
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
