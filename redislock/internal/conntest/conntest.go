// Package conntest has what the tests of every Conn need: a Handler that keeps what it is told, and a watch for
// goroutines that a Conn leaves behind. The Conn over rueidis and that over go-redis are tested with it.
package conntest

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/redislock/conn"
)

// Patience bounds everything that must happen at some time.
const Patience = 15 * time.Second

// Told is what a Handler was told: a push, or without a channel a drop, or that what was dropped can be asked for.
type Told struct {
	Link             conn.Link
	Channel, Message string
	Resumed          bool
}

// Push is what a Handler is told of a push.
func Push(l conn.Link, channel, message string) Told {
	return Told{Link: l, Channel: channel, Message: message}
}

// Teller is a Handler that keeps what it is told.
type Teller struct {
	All chan Told // larger than any test needs
}

// NewTeller returns a Handler that has been told nothing yet.
func NewTeller() *Teller { return &Teller{make(chan Told, 100_000)} }

// Pushed keeps a push.
func (h *Teller) Pushed(l conn.Link, channel, message string) { h.All <- Push(l, channel, message) }

// Dropped keeps a drop.
func (h *Teller) Dropped(l conn.Link) { h.All <- Told{Link: l} }

// Resumed keeps that.
func (h *Teller) Resumed(l conn.Link) { h.All <- Told{Link: l, Resumed: true} }

// next waits for the next thing that is told.
func (h *Teller) next(t testing.TB, want string) Told {
	t.Helper()
	select {
	case got := <-h.All:
		return got
	case <-time.After(Patience):
		t.Fatalf("the handler was not told %s within %v", want, Patience)
		panic("not reached")
	}
}

// Want waits for the next thing that is told and compares it.
func (h *Teller) Want(t testing.TB, want Told) {
	t.Helper()
	if got := h.next(t, fmt.Sprintf("%+v", want)); got != want {
		t.Fatalf("the handler was told %+v, want %+v", got, want)
	}
}

// WantAfterDrops waits for a push, before which there may be drops, and counts them.
func (h *Teller) WantAfterDrops(t testing.TB, want Told) (drops int) {
	t.Helper()
	for {
		switch got := h.next(t, fmt.Sprintf("%+v", want)); got {
		case want:
			return drops
		case Told{}, Told{Resumed: true}:
			drops++
		default:
			t.Fatalf("the handler was told %+v, want %+v", got, want)
		}
	}
}

// WantDrop waits for a drop and then for its end, before which there may be pushes that nobody has waited for.
func (h *Teller) WantDrop(t testing.TB) {
	t.Helper()
	for _, want := range []Told{{}, {Resumed: true}} {
		for h.next(t, "of a drop") != want {
		}
	}
}

// None fails if there is something that was told.
func (h *Teller) None(t testing.TB) {
	t.Helper()
	select {
	case got := <-h.All:
		t.Fatalf("the handler was told %+v, want nothing", got)
	default:
	}
}

// Leaks watches for goroutines that are left when the last Conn and its client have been closed. Tests that use one do
// not run in parallel, since the goroutines of one Conn cannot be told from those of another.
type Leaks struct {
	// Ours reports whether a goroutine with that stack belongs to a Conn or to its client.
	Ours func(stack string) bool

	open   int
	before map[string]string // what ran before the first Conn that is open was opened
}

// Opened notes that a Conn is about to be opened. It is called before the cleanup that closes the Conn is registered,
// and judges after it.
func (k *Leaks) Opened(t testing.TB) {
	t.Helper()
	if k.open == 0 {
		k.before = k.stacks()
	}
	k.open++
	t.Cleanup(func() {
		if k.open > 0 {
			return
		}
		var left []string
		if !Within(func() bool { left = k.left(); return len(left) == 0 }) {
			t.Errorf("goroutines are left after Close:\n%s", strings.Join(left, "\n\n"))
		}
	})
}

// Closed notes that a Conn and its client have been closed.
func (k *Leaks) Closed() { k.open-- }

// left returns the stacks of goroutines that did not run before.
func (k *Leaks) left() (stacks []string) {
	for id, stack := range k.stacks() {
		if k.before[id] == "" {
			stacks = append(stacks, stack)
		}
	}
	return stacks
}

// stacks returns the stacks of the goroutines that are ours, by "goroutine N".
func (k *Leaks) stacks() map[string]string {
	buf := make([]byte, 8<<20)
	all := map[string]string{}
	for stack := range strings.SplitSeq(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		ours := k.Ours(stack) && !strings.Contains(stack, "testing.tRunner")
		if id, _, ok := strings.Cut(stack, " ["); ok && ours {
			all[id] = stack
		}
	}
	return all
}

// NodesOf returns the n primaries. Those count that answer within a second, in which a machine under load may not run
// all.
func NodesOf(t testing.TB, c conn.Conn, n int) (nodes []conn.Node) {
	t.Helper()
	Eventually(t, fmt.Sprintf("%d nodes to answer", n), func() bool {
		var err error
		nodes, err = c.Nodes(t.Context())
		if len(nodes) > n {
			t.Fatalf("%d nodes, want %d", len(nodes), n)
		}
		return err == nil && len(nodes) == n
	})
	return nodes
}

// IsRefused reports whether the server has refused.
func IsRefused(err error) bool {
	var refusal *conn.RefusedError
	return errors.As(err, &refusal)
}

// Within reports whether something becomes so.
func Within(is func() bool) bool {
	for end := time.Now().Add(Patience); time.Now().Before(end); <-time.After(2 * time.Millisecond) {
		if is() {
			return true
		}
	}
	return is()
}

// Eventually waits until something is so.
func Eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	if !Within(is) {
		t.Fatalf("not after %v: %s", Patience, what)
	}
}
