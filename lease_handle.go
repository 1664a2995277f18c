package interlock

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/core"
)

// Handle gives a hold away as a text. client_adopt.go is the other side; docs/adr/0055 has the decision.

// Handle returns a text by which another process goes on with this hold; see [Client.Adopt]. It asks no engine. The
// text is a secret: whoever has it can adopt the hold, or release it. It is one word of up to about 2,000 characters
// and has no URL and no password in it.
//
// Until somebody adopts the hold it stays this one and is renewed as before. It can be released, and then the handle is
// worth nothing. When it has been adopted, Err returns [ErrAdopted], Lost is closed, and contexts made by Context have
// ended. From then on nothing of this lease is renewed or released, whatever is called and however late. The engine
// says so at once, or if that message is lost, with the answer to the next renewal. So do everything that must come
// before the other process goes on before you send the handle.
//
// A process that ends before the hold is adopted calls [Lease.Abandon] and not Unlock: the hold can be adopted until
// its lease has run out. The same holds after a crash. A hold that has a handle neither passes on inside this process
// nor is retained. Each call returns a handle of the same hold, and the first that is adopted counts.
//
// A hold of an owner that was named by [WithOwner] has no handle (ErrUnsupported). Lock as the same owner in the other
// process, and unlock here. An owner with further holds on the lock gets ErrNested; an upgradeable read and an upgraded
// hold get ErrUnsupported. Holds that last as long as a session or process cannot travel. On ZooKeeper, etcd, SQL and
// files, and on Redlock, Handle returns ErrUnsupported with the reason.
func (l *Lease) Handle() (string, error) {
	h := l.hold()

	if err := l.checkMade(); err != nil {
		return "", err
	}
	c := clientOfLock(h.Lock)
	c.lock()
	defer c.unlock()
	h.Check(c.core.Now())
	if err := mayTravel(h); err != nil {
		return "", wrap("handle of", h.Lock.Key(), err)
	}
	// if it passed on, the handle would be that of another owner.
	if g := h.Engine; !g.Alone {
		g.Alone = true
		c.core.AskFor(g.Lock) // the waiters here waited for it to pass on
	}
	travels := driver.Handle{
		Engine: c.core.Traits.Engine, Store: storeMark(c.opts.Store), Kind: l.Kind(), Name: l.Name(), ID: h.Engine.ID,
		Token: h.Token(), Lease: h.Lock.Terms.Lease, Owner: h.Owner.ID, Label: h.Lock.Terms.Label,
	}
	if h.Lock.Terms.Share.Direct {
		travels.Mode, travels.Limit, travels.Weight = h.Mode(), h.Lock.Terms.Share.Limit, h.Lock.Terms.Share.Weight
	}
	return travels.Encode(), nil
}

// mayTravel says why l cannot go on to another client, or returns nil. The caller holds Machine.Mu.
func mayTravel(l *core.Hold) error {
	switch _, err := clientOfLock(l.Lock).adopter(); {
	case l.Ended() != nil:
		return l.Ended()
	case err != nil:
		return err
	case l.Owner.Named:
		return fmt.Errorf("the owner has a name: lock as the same owner in the other process, and then unlock here: %w",
			ErrUnsupported)
	case l.UpgradePair != nil || l.Mode() == driver.Upgradeable:
		return fmt.Errorf("an upgradeable read, or what it was upgraded to, stays with its client: %w", ErrUnsupported)
	case l.Listeners != nil && (l.Listeners.Conversion != nil || l.Listeners.CondWait != nil):
		return fmt.Errorf("it is just being converted, or given up for a condition: %w", ErrConflict)
	case l.Engine.Holds.First != l || l.Links[core.OfGrant].Next != nil:
		return ErrNested
	}
	return nil
}

// adopter returns the engine as an Adopter, or says why its holds cannot go on to another client.
func (c *Client) adopter() (driver.Adopter, error) {
	adopter, can := c.d.(driver.Adopter)
	reason, lacks := c.core.Traits.Lacking(driver.Adoption)
	switch {
	case !c.core.HasLeases():
		return nil, core.Unsupported(c.core.Traits, fmt.Sprintf("a hold ends with its client's %s, so it cannot go on in another",
			c.core.Traits.Lifetime))
	case lacks:
		return nil, core.Unsupported(c.core.Traits, reason)
	case !can:
		return nil, core.Unsupported(c.core.Traits, "its driver is no driver.Adopter")
	}
	return adopter, nil
}

// storeMark returns a hash that tells stores apart without saying where they are; empty if the store is not known. Its
// 6 bytes are enough for a hint in an error, which is all that it is for.
func storeMark(store string) string {
	if store == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(store))
	return hex.EncodeToString(sum[:6])
}
