package interlock

import "github.com/interlock-go/interlock/internal/shell"

// Wanted shows a holder what the engine says for the sake of retention (hold_retain.go): that another client wants the
// lock.

// Wanted returns a channel that is closed when another process asks for the lock. A long job can then give way: it
// unlocks at the next good place and locks again.
//
// With [LockOptions].Retain the channel closes as soon as the other process asks. Without it, or if that message is
// lost, it closes with the next renewal. On ZooKeeper it closes as soon as the hold is a tenth of a second old. On etcd
// it closes when the other process has waited for a third of its session. The other process may have given up by then.
// Goroutines of this process do not count. The channel never closes for read/write locks, permits and named owners, nor
// on files, SQL and Redlock, which do not tell a holder. Wanted sends nothing.
func (l *Lease) Wanted() <-chan struct{} {
	h := l.hold()
	shell.PanicOn(l.checkMade())
	c := shell.ClientOfLock(h.Lock)
	c.Lock()
	defer c.Unlock()
	listeners := h.Listening()
	if listeners.Wanted == nil {
		listeners.Wanted = make(chan struct{})
		if h.Engine.Wanted {
			close(listeners.Wanted)
		}
	}
	return listeners.Wanted
}
