package webguard

import (
	"fmt"
	"testing"
	"time"
)

// Guesses that come at the same time count one by one: their answers take turns, and those that would wait too long are
// turned away.
func TestTries_CountEachOfManyAtTheSameTime(t *testing.T) {
	all, now := tries{next: make(map[string]time.Time)}, time.Now()
	for n := range 100 {
		wait, ok := all.wrong("10.0.0.1", now)
		if want := min(time.Duration(n)*pause, longestWait+pause); wait != want || ok != (want <= longestWait) {
			t.Errorf("guess %d waits %v, %v; want %v", n, wait, ok, want)
		}
	}
	if wait, ok := all.wrong("10.0.0.2", now); wait != 0 || !ok {
		t.Errorf("the first guess of another address waits %v, %v", wait, ok)
	}
	if wait, ok := all.wrong("10.0.0.1", now.Add(time.Minute)); wait != 0 || !ok {
		t.Errorf("a guess a minute later waits %v, %v", wait, ok)
	}
}

func TestTries_RememberSoManyAddresses(t *testing.T) {
	all, now := tries{next: make(map[string]time.Time)}, time.Now()
	for n := range 3 * maxSources {
		all.wrong(fmt.Sprint(n), now.Add(time.Duration(n)*time.Microsecond))
		if len(all.next) > maxSources {
			t.Fatalf("%d addresses are remembered", len(all.next))
		}
	}
}
