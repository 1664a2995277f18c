package drivertest

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/drivertest/faulty"
)

// The promise of adopting: a hold goes on to another client in one step, and then that one alone has it.

func adopting() []behaviour {
	about := func(sentence string, run func(tr *trial), more ...driver.Ability) behaviour {
		return behaviour{
			sentence: sentence, run: run, ends: on(driver.Leases), about: driver.Adoption, needs: more,
		}
	}
	shared := about("readers and permits are adopted as what they are", sharedIsAdopted)
	shared.kinds = []driver.Kind{driver.KindRWMutex, driver.KindSemaphore}
	return []behaviour{
		about("a hold goes on with who adopts it, and nobody gets in between", holdIsAdopted),
		about("who had the hold is told, and can neither renew nor release", giverIsOut),
		about("a hold is adopted once", adoptedOnce),
		about("a hold that has ended is not adopted", endedIsNotAdopted),
		about("what is adopted ends with the lease of who adopted it", adoptedExpires),
		about("an adoption asked again after a lost reply has the same grant", adoptionAfterLostReply),
		about("an adoption that was undone leaves nothing, and a late copy adopts nothing", adoptionIsUndone),
		about("who has further holds beside it keeps the hold", nestedIsNotAdopted, driver.NamedOwners),
		shared,
	}
}

// adopt asks for the hold with the ID from, and gives up after the harness's patience.
func (c *client) adopt(from string, r *driver.Request) (*hold, error) {
	c.tr.Helper()
	d, ok := c.d.(driver.Adopter)
	if !ok {
		c.tr.Fatalf("the driver has no Adopt, and does not declare that it lacks %q", driver.Adoption)
	}
	ctx, cancel := context.WithTimeout(c.tr.Context(), c.tr.h.Patience)
	defer cancel()
	// An adoption never waits: the hold is there, or it is not.
	r.Try = true
	g, err := d.Adopt(ctx, from, r)
	if err != nil {
		return nil, err
	}
	return &hold{c: c, r: r, g: g, back: time.Now()}, nil
}

// adopts is adopt, and fails if r does not get the hold.
func (c *client) adopts(h *hold, r *driver.Request, when string) *hold {
	c.tr.Helper()
	next, err := c.adopt(h.r.ID, r)
	if err != nil {
		c.tr.Fatalf("%s: %s must get the hold that it adopts: %v", when, c.name, err)
	}
	return next
}

// Another client waits all the time, and must not get in when the hold changes hands. The token must grow with each
// adoption.
func holdIsAdopted(tr *trial) {
	a, b, c := tr.client(), tr.client(), tr.client()
	h := a.take(a.ask(tr.mutex()))
	w := c.queue(c.ask(tr.mutex()))
	next := b.adopts(h, b.ask(tr.mutex()), "with another waiting")
	if next.g.Token <= h.g.Token || next.g.Nonce == h.g.Nonce {
		tr.Errorf("the token goes from %d to %d and the nonce from %q to %q, and both must be new, the token larger",
			h.g.Token, next.g.Token, h.g.Nonce, next.g.Nonce)
	}
	w.stillWaits("with the hold adopted")
	tr.must(b.renew(tr.mutex(), next.r.ID, longLease), "renewal by who adopted it")
	last := a.adopts(next, a.ask(tr.mutex()), "back again")
	if last.g.Token <= next.g.Token {
		tr.Errorf("the token of the next adoption is %d, after %d", last.g.Token, next.g.Token)
	}
	last.release()
	w.granted("after the adopted hold").release()
}

// Whoever gave the hold away is told, and nothing that it still sends (renewal, release, undo) may touch the hold.
func giverIsOut(tr *trial) {
	a, b := tr.client(), tr.client()
	r := a.ask(tr.mutex())
	told := losses(r)
	h := a.take(r)
	next := b.adopts(h, b.ask(tr.mutex()), "from another client")
	tr.isTold(told, driver.LostAdopted)
	h.isGone("after the adoption")
	a.undo(r)
	a.findsHeld(tr.mutex(), "after who had it has tried to renew, release and undo it")
	next.release()
	a.findsFree(tr.mutex(), "in the end")
}

// The first to adopt gets the hold; the handle is used up by that.
func adoptedOnce(tr *trial) {
	a, b, c := tr.client(), tr.client(), tr.client()
	h := a.take(a.ask(tr.mutex()))
	next := b.adopts(h, b.ask(tr.mutex()), "at first")
	_, err := c.adopt(h.r.ID, c.ask(tr.mutex()))
	tr.mustMatch(err, driver.ErrLost, "a second adoption")
	again := a.adopts(next, a.ask(tr.mutex()), "of what was adopted")
	again.release()
	b.findsFree(tr.mutex(), "in the end")
}

// A handle of a hold that is over must not let anybody in, also beside a successor.
func endedIsNotAdopted(tr *trial) {
	a, b := tr.client(), tr.client()
	h := a.take(a.ask(tr.mutex()))
	h.release()
	_, err := b.adopt(h.r.ID, b.ask(tr.mutex()))
	tr.mustMatch(err, driver.ErrLost, "the adoption of what was released")
	other := a.take(a.ask(tr.mutex()))
	_, err = b.adopt(h.r.ID, b.ask(tr.mutex()))
	tr.mustMatch(err, driver.ErrLost, "the adoption of what was released, with another inside")
	other.release()
	b.findsFree(tr.mutex(), "in the end")
}

// From the adoption on the lease is the adopter's.
func adoptedExpires(tr *trial) {
	a, b, c := tr.client(), tr.client(), tr.client()
	h := a.take(a.briefly(tr.mutex()))
	next := b.adopts(h, b.briefly(tr.mutex()), "within its lease")
	last := c.getsIn(tr.mutex(), tr.h.Patience, "after the lease of who adopted it")
	last.notBefore(next.trustedUntil(), "after an adoption")
	next.isGone("after its lease")
	last.release()
}

// The repetition is the same grant, as with any request.
func adoptionAfterLostReply(tr *trial) {
	a, b := tr.client(), tr.behind(faulty.Rule{Op: faulty.Adopt, Count: 1, Drop: faulty.Reply})
	h, r := a.take(a.ask(tr.mutex())), b.ask(tr.mutex())
	_, err := b.adopt(h.r.ID, r)
	tr.mustMatch(err, driver.ErrUnavailable, "an adoption whose reply is lost")
	next := b.adopts(h, copyOf(r), "once more")
	next.isSame(b.adopts(h, copyOf(r), "a third time"))
	next.release()
	a.findsFree(tr.mutex(), "after one release")
}

// Undone before it arrives, it must take nothing from the giver; undone after it, it ends the hold.
func adoptionIsUndone(tr *trial) {
	a, b := tr.client(), tr.client()
	h, r := a.take(a.ask(tr.mutex())), b.ask(tr.mutex())
	b.undo(r)
	_, err := b.adopt(h.r.ID, r)
	tr.mustMatch(err, driver.ErrLost, "an adoption that was undone before it came")
	b.findsHeld(tr.mutex(), "after an adoption that was refused")
	next := b.adopts(h, b.ask(tr.mutex()), "by another request")
	b.undo(next.r)
	a.findsFree(tr.mutex(), "after an adoption that was undone")
}

// The holds of a named owner belong together, so none of them goes away alone.
func nestedIsNotAdopted(tr *trial) {
	a, b := tr.client(), tr.client()
	one := a.take(a.asOwner("order-7", tr.mutex()))
	_, err := b.adopt(one.r.ID, b.ask(tr.mutex()))
	tr.mustMatch(err, driver.ErrNested, "the adoption of the hold of a named owner")
	two := a.take(a.asOwner("order-7", tr.mutex()))
	_, err = b.adopt(one.r.ID, b.ask(tr.mutex()))
	tr.mustMatch(err, driver.ErrNested, "the adoption of one of two holds of an owner")
	two.abandon() // how several holds of an owner end is another promise
	one.abandon()
}

// Mode and permits stay what they were.
func sharedIsAdopted(tr *trial) {
	a, b := tr.client(), tr.client()
	read, other := a.take(a.reader()), a.take(a.reader())
	next := b.adopts(read, b.reader(), "a read beside another")
	other.release()
	a.isRefused(a.writer(), "with a read inside that was adopted")
	a.fits(a.reader(), "a read beside one that was adopted")
	next.release()
	a.fits(a.writer(), "a writer in the end")

	two := a.take(a.permits(3, 2))
	next = b.adopts(two, b.permits(3, 2), "two permits")
	a.isRefused(a.permits(3, 2), "with two permits adopted")
	a.fits(a.permits(3, 1), "the permit that is left")
	tr.must(b.renew(next.r.Key, next.r.ID, longLease), "renewal of permits that were adopted")
	next.release()
	a.fits(a.permits(3, 3), "all permits in the end")
}
