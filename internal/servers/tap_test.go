package servers

import (
	"fmt"
	"slices"
	"sync"
	"testing"
)

func TestProxy_Tap_HearsARequestBeforeItsReply(t *testing.T) {
	t.Parallel()
	p := NewProxy(t, newFar(t).addr)
	silent := newNear(t, p)
	silent.echoes("x") // so that it is accepted before the tap
	var mu sync.Mutex
	var heard []string
	p.Tap(func(connection int64, d Direction, b []byte) {
		mu.Lock()
		defer mu.Unlock()
		heard = append(heard, fmt.Sprintf("%d %d %s", connection, d, b))
	})
	a := newNear(t, p)
	a.echoes("1")
	b := newNear(t, p)
	b.echoes("2")
	a.echoes("3")
	p.Tap(nil)
	newNear(t, p).echoes("4")
	silent.echoes("5")
	mu.Lock()
	defer mu.Unlock()
	if want := []string{"2 1 1", "2 2 1", "3 1 2", "3 2 2", "2 1 3", "2 2 3"}; !slices.Equal(heard, want) {
		t.Errorf("heard %q, want %q", heard, want)
	}
}
