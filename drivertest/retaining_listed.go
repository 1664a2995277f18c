package drivertest

// The promise of recalls, continued: listings of retained locks.

// An ordinary renewal that is late, of no later pass, must not bring the owner back into the list. One of a later pass
// must, because then somebody holds the lock again.
func retainedIsListed(tr *trial) {
	a, b := tr.client(), tr.client()
	r, _ := a.passing()
	r.Label = "nightly"
	h := a.take(r)
	if !h.passes(1) {
		return
	}
	b.seesRetained(false, h, "while it is held")
	h.retain(0, longLease)
	b.seesRetained(true, h, "while it is retained")
	tr.must(h.renew(0, longLease), "a late renewal")
	b.seesRetained(true, h, "after a late renewal")
	if held := b.refusedBy(tr.mutex(), "while it is retained"); held.Client != r.Client || held.Owner != "" ||
		!held.Retains {
		tr.Errorf("the refusal is %+v, want the client %q, no owner, and Retains", *held, r.Client)
	}
	tr.must(h.renew(1, longLease), "renewal of a later pass")
	b.seesRetained(false, h, "while it is held again")
	h.release()
}

// seesRetained fails unless the listing, and a look, show h as retained by its client, or as held by its owner.
func (c *client) seesRetained(want bool, h *hold, when string) {
	c.tr.Helper()
	owner := h.r.Owner
	if want {
		owner = ""
	}
	listed := c.showsHolders(h.r.Key, 1)
	for _, got := range append(listed, c.sees(h.r.Key, when).Holders...) {
		if got.Retained != want || got.Owner != owner || got.Client != h.r.Client || got.Cooldown {
			c.tr.Fatalf("%s the holder is listed as %+v, want Retained %v, owner %q, client %q",
				when, got, want, owner, h.r.Client)
		}
	}
}
