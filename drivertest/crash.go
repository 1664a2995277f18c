package drivertest

// The promise about crashes: a dead client keeps nobody out for ever, neither as a holder nor as a waiter.

func crash() []behaviour {
	return []behaviour{
		{sentence: "who waits for a crashed holder is let in", run: waiterOutlivesTheHolder},
		{sentence: "all locks of a crashed client become free", run: allLocksOfTheDeadBecomeFree},
		{sentence: "a crashed waiter does not keep out those behind it", run: deadWaiterBlocksNobody},
		{sentence: "a crash of one client leaves the holds of others alone", run: crashLeavesOthersAlone},
	}
}

// mortal takes a lock as a client that is going to die: with the short lease.
func (c *client) mortal(suffix string) {
	c.tr.Helper()
	c.take(c.briefly(c.tr.another(suffix)))
}

// The holder releases nothing, so the end of its lease or session must wake the waiters. An engine that only lets in on
// a release would leave them asleep.
func waiterOutlivesTheHolder(tr *trial) {
	a, b, c := tr.client(), tr.client(), tr.client()
	a.mortal("")
	one, two := b.queue(b.ask(tr.mutex())), c.queue(c.ask(tr.mutex()))
	tr.crash(a)
	tr.serveAllWithin(tr.afterlife(), "after the holder crashed", one, two)
}

// Several locks of one client, of which each must become free by itself.
func allLocksOfTheDeadBecomeFree(tr *trial) {
	a, b := tr.client(), tr.client()
	suffixes := []string{"-1", "-2", "-3"}
	for _, s := range suffixes {
		a.mortal(s)
	}
	tr.crash(a)
	for _, s := range suffixes {
		b.start(b.ask(tr.another(s))).grantedWithin(tr.afterlife(), "after its holder crashed").release()
	}
}

// The dead one stands in the queue. It may be granted the lock, and must lose it again in time for whoever stands
// behind.
func deadWaiterBlocksNobody(tr *trial) {
	a, b, c := tr.client(), tr.client(), tr.client()
	h := a.take(a.ask(tr.mutex()))
	dead := b.queue(b.briefly(tr.mutex()))
	behind := c.queue(c.ask(tr.mutex()))
	tr.crash(b, dead)
	h.release()
	behind.grantedWithin(tr.afterlife(), "behind a waiter that crashed").release()
}

// The clean-up after one client must not take locks of another.
func crashLeavesOthersAlone(tr *trial) {
	a, b, c := tr.client(), tr.client(), tr.client()
	a.mortal("-1")
	stays := b.take(b.ask(tr.another("-2")))
	tr.crash(a)
	c.start(c.ask(tr.another("-1"))).grantedWithin(tr.afterlife(), "after its holder crashed").release()
	c.findsHeld(stays.r.Key, "after another client crashed")
	stays.release()
}
