package pglock

import "time"

const (
	buryFirst = 2 * time.Millisecond
	buryMost  = time.Second
)

// bury sees to it that the server ends the session of a connection that has ended here: it may not have heard of that,
// and would keep its locks until idle_session_timeout, or wait for one on behalf of nobody.
func (d *Driver) bury(c *conn) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for pause := buryFirst; ; pause = min(2*pause, buryMost) {
		select {
		case <-timer.C:
		case <-d.base.Done():
			return
		}
		if d.isBuried(c) {
			break
		}
		timer.Reset(pause)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for e := range c.holds {
		d.drop(e)
	}
}

// isBuried reports whether the server is known to have no such session, and otherwise has it ended.
func (d *Driver) isBuried(c *conn) bool {
	word := make(chan bool, 1)
	d.onShared(job{
		run:  func(shared *conn) { word <- shared.buries(c) },
		dead: func(error) { word <- false },
	})
	select {
	case buried := <-word:
		return buried
	case <-d.base.Done():
		return false
	}
}

// buries ends another session, and reports whether it had ended before. It has given its locks back when it is not
// listed any more. A role without the right to end it waits until it is gone.
func (c *conn) buries(other *conn) bool {
	found, err := c.exec(stmtTerminate, int4Value(other.pid), other.started)
	return err == nil && len(found) == 0
}
