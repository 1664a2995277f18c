package memlock

import "time"

// Stall is for tests. It makes the holds of this client older by that time, as if its process had stood still for so
// long without noticing. Holds whose lease has ended by then expire, and the next waiter gets in. The client is not
// told: it learns of the loss from the answer to its next request. Waits, and locks that are kept closed, stay as they
// are.
func (d *Driver) Stall(by time.Duration) error {
	return d.do(func(now time.Time, q *state) error {
		// First what is over anyway, so that only holds which are live are moved.
		q.advance(now)
		for _, rec := range q.records {
			if rec.from == d && rec.phase == held {
				q.leases.move(&rec.entry, rec.at.Add(-by))
			}
		}
		q.advance(now)
		return nil
	})
}
