package interlock

import "time"

// lock takes Client.mu, which guards queues, grants, leases and the scheduler of the client. Under it nothing blocks,
// and neither the driver nor anything of the user is called.
func (c *Client) lock() { c.mu.Lock() }

// after has f called as soon as Client.mu has been given up. The caller holds Client.mu.
func (c *Client) after(f func()) { c.todo = append(c.todo, f) }

// unlock gives Client.mu up and then does what was put off.
func (c *Client) unlock() {
	todo := c.todo
	c.todo = nil
	c.mu.Unlock()
	for _, f := range todo {
		f()
	}
}

// now reads the monotonic clock, and notices if the machine was asleep. The caller holds Client.mu.
func (c *Client) now() time.Time {
	now := time.Now()
	if c.watching {
		c.sleep.look(now)
	}
	return now
}
