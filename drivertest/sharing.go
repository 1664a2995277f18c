package drivertest

import (
	"errors"

	"github.com/interlock-go/interlock/driver"
)

// The promise of sharing: readers, writers and permits share one fair queue, and what fits is let in together.

func sharing() []behaviour {
	rw, sem := []driver.Kind{driver.KindRWMutex}, []driver.Kind{driver.KindSemaphore}
	inOrder := needing(driver.Order)
	return []behaviour{
		{sentence: "readers are inside together and keep writers out", run: readersShare, kinds: rw},
		{sentence: "a writer keeps everybody out", run: writerExcludes, kinds: rw},
		{
			sentence: "readers do not overtake a writer that waits", run: readersDoNotOvertakeAWriter, kinds: rw,
			needs: inOrder,
		},
		{sentence: "readers that wait are let in together", run: waitingReadersEnterTogether, kinds: rw},
		{
			sentence: "one upgradeable reader is beside readers, or the engine refuses it for good",
			run:      oneUpgradeableBesideReaders, kinds: rw,
		},
		{sentence: "permits are granted up to the limit", run: permitsUpToTheLimit, kinds: sem},
		{sentence: "a request takes all its permits or none", run: allPermitsOrNone, kinds: sem},
		{
			sentence: "a small request does not overtake a big one that waits", run: smallDoesNotOvertakeBig,
			kinds: sem, needs: inOrder,
		},
		{sentence: "another limit is a conflict while the semaphore is in use", run: otherLimitIsAConflict, kinds: sem},
		{sentence: "more permits than the limit are refused for good", run: moreThanTheLimitIsRefused, kinds: sem},
		{
			sentence: "the same named owner takes permits each time", run: permitsAreNotReentrant, kinds: sem,
			needs: needing(driver.NamedOwners),
		},
		{
			sentence: "a larger limit lets in who waits, and a smaller one takes no permit away", run: limitIsChanged,
			kinds: sem, needs: needing(driver.Resizing),
		},
		{
			sentence: "a limit below what somebody waits for is a conflict", run: limitStaysForWhoWaits,
			kinds: sem, needs: needing(driver.Resizing),
		},
		{
			sentence: "a semaphore that nobody uses has no limit to change", run: unusedIsNotResized,
			kinds: sem, needs: needing(driver.Resizing),
		},
	}
}

// writer returns a request to write.
func (c *client) writer() *driver.Request { return c.ask(c.tr.key(driver.KindRWMutex)) }

// reader returns a request to read.
func (c *client) reader() *driver.Request {
	r := c.writer()
	r.Mode = driver.Shared
	return r
}

// upgradeable returns a request for the upgradeable read.
func (c *client) upgradeable() *driver.Request {
	r := c.writer()
	r.Mode = driver.Upgradeable
	return r
}

// permits returns a request for weight permits out of limit.
func (c *client) permits(limit, weight int) *driver.Request {
	r := c.ask(c.tr.key(driver.KindSemaphore))
	r.Mode, r.Limit, r.Weight = driver.Shared, limit, weight
	return r
}

// fits fails unless a try of r is granted, and releases it.
func (c *client) fits(r *driver.Request, when string) {
	c.tr.Helper()
	h, err := c.tryFor(r)
	c.tr.must(err, when)
	h.release()
}

// A writer is refused until the last reader has left, also one of the readers' own client.
func readersShare(tr *trial) {
	a, b := tr.client(), tr.client()
	one, two, three := a.take(a.reader()), a.take(a.reader()), b.take(b.reader())
	b.isRefused(b.writer(), "with three readers inside")
	three.release()
	a.isRefused(a.writer(), "with two readers of its own client inside")
	one.release()
	b.isRefused(b.writer(), "with one reader inside")
	two.release()
	b.fits(b.writer(), "a writer after the last reader")
}

// Every mode is refused beside a writer.
func writerExcludes(tr *trial) {
	a, b := tr.client(), tr.client()
	w := a.take(a.writer())
	b.isRefused(b.reader(), "with a writer inside")
	if !b.lacksUpgradeable() {
		b.isRefused(b.upgradeable(), "with a writer inside")
	}
	b.isRefused(b.writer(), "with a writer inside")
	w.release()
	b.fits(b.reader(), "a reader after the writer")
}

// Otherwise readers that keep coming would keep a writer out for ever.
func readersDoNotOvertakeAWriter(tr *trial) {
	a, b, c := tr.client(), tr.client(), tr.client()
	inside := a.take(a.reader())
	writer := b.queue(b.writer())
	c.comesToBeRefused(c.reader, "with a writer waiting")
	a.isRefused(a.reader(), "with a writer waiting, by the client that reads")
	reader := c.queue(c.reader())
	reader.stillWaits("behind a writer that waits")
	inside.release()
	w := writer.granted("after the last reader")
	reader.stillWaits("with the writer inside")
	w.release()
	reader.granted("after the writer").release()
}

// None of them releases before all are in: an engine that lets in one at a time would hang.
func waitingReadersEnterTogether(tr *trial) {
	a, b, c := tr.client(), tr.client(), tr.client()
	w := a.take(a.writer())
	one, two, three := b.queue(b.reader()), c.queue(c.reader()), b.queue(b.reader())
	w.release()
	holds := []*hold{
		one.granted("after the writer"), two.granted("after the writer"), three.granted("after the writer"),
	}
	for _, h := range holds {
		h.release()
	}
}

// lacksUpgradeable reports whether the engine lacks conversion and refuses the upgradeable read for good.
func (c *client) lacksUpgradeable() bool {
	c.tr.Helper()
	if _, lacks := c.tr.traits.Lacking(driver.Conversion); !lacks {
		return false
	}
	h, err := c.tryFor(c.upgradeable())
	if err == nil {
		h.release()
	}
	return errors.Is(err, driver.ErrUnsupported) && driver.IsDefinite(err)
}

// Two upgradeable readers that both upgrade would wait for each other.
func oneUpgradeableBesideReaders(tr *trial) {
	a, b := tr.client(), tr.client()
	if a.lacksUpgradeable() {
		b.fits(b.writer(), "a writer after an upgradeable read was refused for good")
		return
	}
	reader, upgradeable := a.take(a.reader()), a.take(a.upgradeable())
	second := b.take(b.reader())
	b.isRefused(b.upgradeable(), "with another upgradeable reader inside")
	b.isRefused(b.writer(), "with readers inside")
	reader.release()
	second.release()
	b.isRefused(b.writer(), "with an upgradeable reader inside")
	upgradeable.release()
	b.fits(b.writer(), "a writer after the upgradeable reader")
}

// The permits are out in several holds of two clients, so an engine that counts by client grants too many. A release
// makes room for one waiter.
func permitsUpToTheLimit(tr *trial) {
	a, b := tr.client(), tr.client()
	one, two, three := a.take(a.permits(3, 1)), a.take(a.permits(3, 1)), b.take(b.permits(3, 1))
	b.isRefused(b.permits(3, 1), "with all three permits taken")
	w := b.queue(b.permits(3, 1))
	two.release()
	four := w.granted("after the release of a permit")
	a.isRefused(a.permits(3, 1), "with all three permits taken again")
	one.release()
	three.release()
	four.release()
}

// A request that kept one of its permits while it was refused would take it from others.
func allPermitsOrNone(tr *trial) {
	a, b := tr.client(), tr.client()
	two := a.take(a.permits(3, 2))
	b.isRefused(b.permits(3, 2), "with one permit left")
	one := b.take(b.permits(3, 1)) // the refused request has kept none
	two.release()
	again := b.take(b.permits(3, 2))
	one.release()
	again.release()
	a.fits(a.permits(3, 3), "all permits in the end")
}

// Otherwise small requests that keep coming would starve a big one.
func smallDoesNotOvertakeBig(tr *trial) {
	a, b, c := tr.client(), tr.client(), tr.client()
	one, two := a.take(a.permits(3, 1)), a.take(a.permits(3, 1))
	big := b.queue(b.permits(3, 3))
	c.comesToBeRefused(func() *driver.Request { return c.permits(3, 1) }, "with a big request waiting")
	small := c.queue(c.permits(3, 1))
	small.stillWaits("behind a big request")
	one.release()
	small.stillWaits("behind a big request, with two permits left")
	two.release()
	h := big.granted("with all permits free")
	h.release()
	small.granted("after the big request").release()
}

// With two limits in force nobody could say how many permits there are.
func otherLimitIsAConflict(tr *trial) {
	a, b := tr.client(), tr.client()
	h := a.take(a.permits(3, 1))
	for _, try := range []bool{false, true} {
		r := b.permits(4, 1)
		r.Try = try
		_, err := b.acquire(r)
		tr.mustMatch(err, driver.ErrConflict, "a request with another limit")
	}
	h.release()
	b.fits(b.permits(4, 4), "another limit when the semaphore is free")
}

// Such a request could never be granted, so it must not wait.
func moreThanTheLimitIsRefused(tr *trial) {
	a := tr.client()
	w := a.start(a.permits(3, 4))
	if !w.ends(tr.h.Patience) || w.err == nil {
		tr.Fatalf("a request for 4 of 3 permits waits or is granted, want an error")
	}
	a.fits(a.permits(3, 3), "all permits after the refusal")
}

// Permits are counted, so the same owner takes more of them each time.
func permitsAreNotReentrant(tr *trial) {
	a, b := tr.client(), tr.client()
	named := func(c *client) *driver.Request {
		r := c.permits(2, 1)
		r.Owner, r.Named = "order-7", true
		return r
	}
	one, two := a.take(named(a)), b.take(named(b))
	b.isRefused(named(b), "by the same owner, with both permits taken")
	one.release()
	two.release()
}

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
