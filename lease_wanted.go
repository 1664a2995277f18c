package interlock

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
	panicOn(l.checkMade())
	c := l.m.client()
	c.lock()
	defer c.unlock()
	listeners := l.listening()
	if listeners.wanted == nil {
		listeners.wanted = make(chan struct{})
		if l.g.Wanted {
			close(listeners.wanted)
		}
	}
	return listeners.wanted
}

// tellWanted closes the channel of Wanted. The caller holds Client.mu, and calls it once for each hold.
func (l *Lease) tellWanted() {
	if l.listeners != nil && l.listeners.wanted != nil {
		close(l.listeners.wanted)
	}
}
