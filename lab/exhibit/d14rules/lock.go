// Package d14rules is an exhibit, broken on purpose: Redlock whose rules can be left out one by one. It asks one node
// after the other, as one of the articles does.
package d14rules

import (
	"context"
	"strconv"
	"time"

	"github.com/interlock-go/interlock/lab/exhibit"
)

// Rules are those of the algorithm. The zero value has none of them.
type Rules struct {
	Majority   bool          // more than half of the nodes must grant the lock; without it one is enough
	Measure    bool          // T2-T1 is taken off the lease; without it the lease counts from the last answer
	Everywhere bool          // a release goes to all nodes; without it to those that said OK
	OneValue   bool          // all nodes get the same value; without it each gets its own, and the last is remembered
	NodeTime   time.Duration // how long a node may take to answer; 0 is as long as it likes
}

// Lock is one lock on several servers that know nothing of each other, as one client sees it.
type Lock struct {
	Nodes []exhibit.Conn
	Key   string
	Rules Rules
	Now   func() time.Time // the client's clock

	value   string // the last that was sent
	granted []bool // by node
}

// TryLock takes the lock and returns how long it may be used. If the rules refuse it, it is released again.
func (l *Lock) TryLock(ctx context.Context, owner string, lease time.Duration) (validity time.Duration, ok bool) {
	began := l.Now() // T1
	l.granted = make([]bool, len(l.Nodes))
	votes := 0
	for i := range l.Nodes {
		l.value = owner
		if !l.Rules.OneValue {
			l.value += "/" + strconv.Itoa(i+1) // stands for a random value
		}
		l.granted[i] = l.ask(ctx, i, lease)
		if l.granted[i] {
			votes++
		}
	}
	validity = lease
	if l.Rules.Measure {
		validity -= l.Now().Sub(began) + lease/100 + 2*time.Millisecond // T2-T1, and what clocks may drift
	}
	enough := 1
	if l.Rules.Majority {
		enough = len(l.Nodes)/2 + 1
	}
	if votes >= enough && validity > 0 {
		return validity, true
	}
	l.Unlock(ctx)
	return 0, false
}

// ask sends the request to one node. A node that does not answer has not granted.
func (l *Lock) ask(ctx context.Context, i int, lease time.Duration) bool {
	ctx, cancel := l.limit(ctx)
	defer cancel()
	ms := strconv.FormatInt(lease.Milliseconds(), 10)
	got, err := exhibit.OK(l.Nodes[i].Do(ctx, "SET", l.Key, l.value, "NX", "PX", ms))
	return err == nil && got
}

// release deletes the key where it has the value.
const release = `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) else return 0 end`

// Unlock releases the lock with the value that is remembered.
func (l *Lock) Unlock(ctx context.Context) {
	for i, node := range l.Nodes {
		if l.granted[i] || l.Rules.Everywhere {
			ctx, cancel := l.limit(ctx)
			_, _ = node.Do(ctx, "EVAL", release, "1", l.Key, l.value) // a node that is away forgets it by its lease
			cancel()
		}
	}
}

// limit bounds the talk with one node.
func (l *Lock) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	if l.Rules.NodeTime == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, l.Rules.NodeTime)
}
