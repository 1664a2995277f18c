// Goroutines of the driver. Everything that waits for the library runs in one of them.

package zklock

// spawn runs f in a goroutine that Close waits for. If the driver is closed it returns false and does not run f. The
// client library knows no contexts, so each request has a goroutine.
func (d *Driver) spawn(f func()) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return false
	}
	d.calls.Go(f)
	return true
}
