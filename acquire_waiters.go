package interlock

// waiterList is a queue's waiters in the order in which they came. It is linked, because any of thousands may leave at
// any time. Guarded by Client.mu.
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

// drop takes w out, if it stands there.
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

// each calls f for everybody in line; f may take out whom it is called for.
func (n *waiterList) each(f func(*waiter)) {
	for w := n.first; w != nil; {
		behind := w.behind
		f(w)
		w = behind
	}
}
