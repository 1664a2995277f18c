package interlock

import (
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/shell"
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
	c := shell.ClientOfLock(h.Lock)
	c.Lock()
	defer c.Unlock()
	h.Check(c.Machine.Now())
	if err := shell.MayTravel(h); err != nil {
		return "", shell.Wrap("handle of", h.Lock.Key(), err)
	}
	// if it passed on, the handle would be that of another owner.
	if g := h.Engine; !g.Alone {
		g.Alone = true
		c.Machine.AskFor(g.Lock) // the waiters here waited for it to pass on
	}
	travels := driver.Handle{
		Engine: c.Machine.Traits.Engine, Store: shell.StoreMark(c.Config.Store), Kind: l.Kind(), Name: l.Name(), ID: h.Engine.ID,
		Token: h.Token(), Lease: h.Lock.Terms.Lease, Owner: h.Owner.ID, Label: h.Lock.Terms.Label,
	}
	if h.Lock.Terms.Share.Direct {
		travels.Mode, travels.Limit, travels.Weight = h.Mode(), h.Lock.Terms.Share.Limit, h.Lock.Terms.Share.Weight
	}
	return travels.Encode(), nil
}
