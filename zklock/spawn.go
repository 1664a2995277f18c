// Goroutines of the driver. Everything that waits for the library runs in one of them.
//
// A request of the library cannot be cancelled: it ends with its answer or with its connection. So a caller whose
// context ends leaves the goroutine behind, and the driver waits for it in Close, when the connection is cut. Workers
// that are kept between requests were tried and gave nothing (docs/rationale.md, Small optimizations).

package zklock

// spawn runs f in a goroutine that Close waits for. If the driver is closed it returns false and does not run f. The
// client library knows no contexts, so each request has a goroutine. closed is read under the same mutex under which
// Close sets it, so nothing joins the group while Close waits for it.
func (d *Driver) spawn(f func()) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return false
	}
	d.calls.Go(f)
	return true
}
