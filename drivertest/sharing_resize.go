package drivertest

import (
	"github.com/interlock-go/interlock/driver"
)

// The promise of sharing, continued: the limit changes while the semaphore is in use.

// resize changes the limit of the trial's semaphore.
func (c *client) resize(limit int) error {
	c.tr.Helper()
	d, ok := c.d.(driver.Resizer)
	if !ok {
		c.tr.Fatalf("the driver has no Resize, and does not declare that it lacks %q", driver.Resizing)
	}
	ctx, cancel := c.tr.bound()
	defer cancel()
	return d.Resize(ctx, c.tr.key(driver.KindSemaphore), limit)
}

// A larger limit must wake waiters, and a smaller one must not grant until enough has come back.
func limitIsChanged(tr *trial) {
	a, b, c := tr.client(), tr.client(), tr.client()
	one, two := a.take(a.permits(2, 1)), b.take(b.permits(2, 1))
	third, fourth, fifth := b.queue(b.permits(2, 1)), c.queue(c.permits(2, 1)), b.queue(b.permits(2, 1))
	for range 2 { // a repetition changes nothing more
		tr.must(c.resize(4), "a larger limit")
	}
	three, four := third.granted("under the larger limit"), fourth.granted("under the larger limit")
	fifth.stillWaits("with four permits of four taken")
	_, err := a.tryFor(a.permits(2, 1))
	tr.mustMatch(err, driver.ErrConflict, "a request with the limit from before")

	tr.must(a.resize(1), "a smaller limit")
	one.release()
	two.release()
	three.release()
	fifth.stillWaits("with one permit of one taken, which was granted under a larger limit")
	four.release()
	fifth.granted("with the only permit free").release()
	a.fits(a.permits(3, 3), "another limit when the semaphore is free")
}

// Under the smaller limit the request that waits could never be granted.
func limitStaysForWhoWaits(tr *trial) {
	a, b := tr.client(), tr.client()
	one := a.take(a.permits(3, 1))
	big := b.queue(b.permits(3, 3))
	tr.mustMatch(a.resize(2), driver.ErrConflict, "a limit of two while somebody waits for three permits")
	_, err := a.tryFor(a.permits(2, 1))
	tr.mustMatch(err, driver.ErrConflict, "a request with the limit that was refused")
	one.release()
	big.granted("with all permits free").release()
}

// The limit belongs to the lock while it is in use, and to nobody else.
func unusedIsNotResized(tr *trial) {
	a := tr.client()
	tr.must(a.resize(2), "a semaphore that was never used")
	a.fits(a.permits(3, 3), "the first request")
	tr.must(a.resize(2), "a semaphore that is free again")
	a.fits(a.permits(3, 3), "another request")
}
