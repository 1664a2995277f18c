package board

import (
	"slices"
	"time"
)

// jitter is how far the end of a lease may move without being another one. Engines work it out from what remains when
// they are asked, in whole milliseconds, so it is not the same twice. A renewal moves it much further.
const jitter = 50 * time.Millisecond

// same reports whether nothing has changed that anybody could see.
func same(x, y *Lock) bool {
	return x.Limit == y.Limit && x.Unreadable == y.Unreadable && (x.Waiters == nil) == (y.Waiters == nil) &&
		slices.Equal(x.Waiters, y.Waiters) && slices.EqualFunc(x.Holders, y.Holders, sameHolder)
}

func sameHolder(x, y Holder) bool {
	if x.Until.IsZero() != y.Until.IsZero() || x.Until.Sub(y.Until).Abs() > jitter {
		return false
	}
	x.Until = y.Until
	return x == y
}
