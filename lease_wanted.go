package interlock

// Wanted returns a channel that is closed when another process asks for the lock, so that a long piece of work can give
// way: unlock at the next good place, and lock again. It says nothing of goroutines of this process, and is never closed
// for readers, writers, permits and named owners, nor on engines that cannot tell a holder that another waits: files,
// ZooKeeper, etcd, SQL, Redlock. With [LockOptions].Retain the channel is closed at once, unless the message is lost;
// otherwise, and then, by the next renewal after the other has asked. Who asks may have given up meanwhile. It asks no
// engine.
func (l *Lease) Wanted() <-chan struct{} {
	mustBe(l.made())
	c := l.m.c
	c.lock()
	defer c.unlock()
	listeners := l.endListeners()
	if listeners.wanted == nil {
		listeners.wanted = make(chan struct{})
		if l.g.wantedNow {
			close(listeners.wanted)
		}
	}
	return listeners.wanted
}

// tellWanted closes the channel of Wanted. The caller holds Client.mu, and calls it once.
func (l *Lease) tellWanted() {
	if l.listeners != nil && l.listeners.wanted != nil {
		close(l.listeners.wanted)
	}
}
