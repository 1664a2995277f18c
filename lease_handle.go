package interlock

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/interlock-go/interlock/driver"
)

// Handle returns a text by which another process goes on with this hold, see [Client.Adopt]. It asks no engine. The
// text is a secret: whoever has it can adopt the hold, or release it. It is one word of up to about 2,000 characters
// and has no URL and no password in it.
//
// Until somebody adopts the hold it stays this one, is renewed as before, and can be released: then the handle is worth
// nothing. When it has been adopted, Err says [ErrAdopted], Lost is closed, contexts made by Context have ended, and
// nothing of this lease is renewed or released any more, whatever is called and however late: by the engine's word at
// once, or if that is lost by the answer to the next renewal. So what has to be done before the other goes on is done
// before the handle is sent.
//
// A process that ends before the hold is adopted calls [Lease.Abandon] and not Unlock: the hold can be adopted until
// its lease has run out. So it can after a crash. A hold that has a handle does not pass on inside this process, nor is
// it retained. Each call returns a handle of the same hold, of which the first that is adopted counts.
//
// A hold of an owner that was named by [WithOwner] has no handle (ErrUnsupported): the other process takes the lock as
// the same owner instead, and this one unlocks. An owner with further holds on the lock gets ErrNested, and an
// upgradeable read and an upgraded hold ErrUnsupported. Holds that last as long as a session or process cannot travel:
// on ZooKeeper, etcd, SQL and files, and on Redlock, Handle returns ErrUnsupported with the reason.
func (l *Lease) Handle() (string, error) {
	if err := l.made(); err != nil {
		return "", err
	}
	c := l.m.c
	c.lock()
	defer c.unlock()
	l.check(c.now())
	if err := l.mayTravel(); err != nil {
		return "", wrap("handle of", l.m.key(), err)
	}
	if g := l.g; !g.alone {
		g.alone = true
		c.askFor(g.m) // those who wait here waited for it to pass on
	}
	h := driver.Handle{
		Engine: c.traits.Engine, Store: storeMark(c.opts.Store), Kind: l.Kind(), Name: l.Name(), ID: l.g.id,
		Token: l.token(), Lease: l.m.p.lease, Owner: l.owner.id, Label: l.m.p.label,
	}
	if l.m.p.share.direct {
		h.Mode, h.Limit, h.Weight = l.mode(), l.m.p.share.limit, l.m.p.share.weight
	}
	return h.Encode(), nil
}

// mayTravel says why l cannot go on to another client. The caller holds Client.mu.
func (l *Lease) mayTravel() error {
	switch _, err := l.m.c.adopter(); {
	case l.ended() != nil:
		return l.ended()
	case err != nil:
		return err
	case l.owner.named:
		return fmt.Errorf("the owner has a name: lock as the same owner in the other process, and then unlock here: %w",
			ErrUnsupported)
	case l.upgradePair != nil || l.mode() == driver.Upgradeable:
		return fmt.Errorf("an upgradeable read, or what it was upgraded to, stays with its client: %w", ErrUnsupported)
	case l.listeners != nil && (l.listeners.conversion != nil || l.listeners.condWait != nil):
		return fmt.Errorf("it is just being converted, or given up for a condition: %w", ErrConflict)
	case l.g.holds.first != l || l.in[ofGrant].next != nil:
		return ErrNested
	}
	return nil
}

// adopter is the engine, or why none of its holds goes on to another client.
func (c *Client) adopter() (driver.Adopter, error) {
	adopter, can := c.d.(driver.Adopter)
	reason, lacks := c.traits.Lacking(driver.Adoption)
	switch {
	case c.traits.Lifetime != driver.Leases:
		return nil, unsupported(c.traits, fmt.Sprintf("a hold ends with its client's %s, so it cannot go on in another",
			c.traits.Lifetime))
	case lacks:
		return nil, unsupported(c.traits, reason)
	case !can:
		return nil, unsupported(c.traits, "its driver is no driver.Adopter")
	}
	return adopter, nil
}

// storeMark tells stores apart without saying where they are; empty if that is not known.
func storeMark(store string) string {
	if store == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(store))
	return hex.EncodeToString(sum[:6])
}
