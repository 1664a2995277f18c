package zklock

// spawn runs f in a goroutine that Close waits for, unless the driver is closed. The client library knows no contexts,
// so each request has one.
func (d *Driver) spawn(f func()) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return false
	}
	d.calls.Go(f)
	return true
}
