package zklock

import "sync/atomic"

// mostIdle is how many goroutines wait for something to do: as many as a request and its watch need.
const mostIdle = 2

// workers are the goroutines that wait for something to do. The client library knows no contexts, so each request has a
// goroutine, and one that has made requests before need not let its stack grow, which costs more than to start it.
type workers struct {
	next chan func()
	many atomic.Int32
}

// spawn runs f in a goroutine that Close waits for, unless the driver is closed.
func (d *Driver) spawn(f func()) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return false
	}
	select {
	case d.idle.next <- f:
	default:
		d.calls.Go(func() { d.work(f) })
	}
	return true
}

// work runs f, and what comes after that. It ends with the driver, or if enough others wait.
func (d *Driver) work(f func()) {
	for {
		f()
		if d.idle.many.Add(1) > mostIdle {
			d.idle.many.Add(-1)
			return
		}
		select {
		case f = <-d.idle.next:
			d.idle.many.Add(-1)
		case <-d.life.Done():
			return
		}
	}
}
