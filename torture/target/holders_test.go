package target

import (
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/enginekit"
	"github.com/interlock-go/interlock/internal/servers"
)

// Who has a mutex is known while somebody waits for it and while nobody does, and the next holder is somebody else.
func TestMutexHolders_AreThoseOfNow(t *testing.T) {
	i := startFor(t, "redis")
	s := i.Server.(*servers.RedisNode)
	holders := func() string {
		ids, err := mutexHolders(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(ids, " ")
	}
	if of := holders(); of != "" {
		t.Errorf("of nobody: %q", of)
	}
	one, other := openWith(t, i.Direct(), time.Minute), openWith(t, i.Direct(), time.Minute)
	held, err := one.Lock(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	first := holders()
	if first == "" || strings.Contains(first, " ") {
		t.Errorf("of one holder: %q", first)
	}
	done := make(chan error, 1)
	go func() { _, err := other.Lock(t.Context(), "x"); done <- err }()
	for end := time.Now().Add(20 * time.Second); ; enginekit.Pause(t.Context(), 10*time.Millisecond) {
		if queued, err := s.Do(t.Context(), "HLEN", "interlock:mutex:x"); err == nil && queued != int64(0) {
			break
		}
		if time.Now().After(end) {
			t.Fatal("nobody waits")
		}
	}
	if of := holders(); of != first {
		t.Errorf("beside one who waits it is %q, and was %q", of, first)
	}
	if err := held.Unlock(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if of := holders(); of == first || of == "" {
		t.Errorf("the next holder is %q, and the one before was %q", of, first)
	}
}
