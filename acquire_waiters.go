package interlock

// The list type under a queue (acquire_queue.go). It knows nothing of locks.

// waiterList is a queue's waiters in the order in which they came. It is a linked list, so that any one of thousands
// can leave at the same cost. A slice would move half of the line for each context that ends. Guarded by Client.mu.
type waiterList struct {
	first, last *waiter
}

// push puts w at the end.
func (n *waiterList) push(w *waiter) {
	w.before, w.standing = n.last, true
	if n.last == nil {
		n.first = w
	} else {
		n.last.behind = w
	}
	n.last = w
}

// drop takes w out. It does nothing if w is not in the list. The owner's count of waits is kept by queue.remove, which
// must come once for each waiter.
func (n *waiterList) drop(w *waiter) {
	if !w.standing {
		return
	}
	if w.before == nil {
		n.first = w.behind
	} else {
		w.before.behind = w.behind
	}
	if w.behind == nil {
		n.last = w.before
	} else {
		w.behind.before = w.before
	}
	w.before, w.behind, w.standing = nil, nil, false
}

// each calls f for every waiter, the first in line first. f may take out the waiter that it is called for, and no
// other.
func (n *waiterList) each(f func(*waiter)) {
	for w := n.first; w != nil; {
		behind := w.behind
		f(w)
		w = behind
	}
}
