package mysqllock

import "time"

const (
	buryFirst = 2 * time.Millisecond
	buryMost  = time.Second
)

// bury sees to it that the server ends the session of a connection that has ended here: it may not have heard of that,
// and would keep its locks until wait_timeout, or wait for one on behalf of nobody. The session is known by its mark,
// because its number may be another session's after a restart.
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

// buries ends another session, and reports whether it had ended before.
func (c *conn) buries(other *conn) bool {
	rows, err := c.query("SELECT IS_USED_LOCK('" + other.mark + "')")
	if err != nil || len(rows) != 1 {
		return false
	}
	id := rows[0].uint(0)
	if id == 0 {
		return true
	}
	// If it ends just now there is no such session, which the next look finds. Its number is used again only by a server
	// that has started again, and that does not hear of this.
	_ = c.run("KILL " + uintText(id))
	return false
}
