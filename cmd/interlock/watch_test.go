package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/console/board"
)

func TestWatch_TellsWhoComesAndGoes(t *testing.T) {
	t.Parallel()
	now := time.Now()
	lock := func(holders []board.Holder, waiters ...board.Waiter) []board.Lock {
		return []board.Lock{{ID: "mutex/a", Kind: interlock.KindMutex, Name: "a", Holders: holders, Waiters: waiters}}
	}
	x := board.Holder{Client: "x", Token: 1, Until: now.Add(time.Minute)}
	rest := board.Holder{Client: "x", Token: 1, Cooldown: true}
	over := board.Holder{Client: "x", Token: 1, Until: now.Add(-time.Second)}
	y := []board.Holder{{Client: "y", Token: 2}}
	for _, row := range []struct {
		before, after []board.Lock
		want          string
	}{
		{nil, lock([]board.Holder{x}, board.Waiter{Client: "y"}), "held x, waiting y"},
		{lock([]board.Holder{x}, board.Waiter{Client: "y"}), lock(y), "released x, held y"}, // y has not left
		{lock([]board.Holder{over}), nil, "ended x"},
		{lock([]board.Holder{x}), lock([]board.Holder{rest}), "released x: the lock stays closed for a while"},
	} {
		var stdout bytes.Buffer
		a := &app{stdout: &stdout, output: asJSON}
		if err := a.printEvents(board.Changes(row.before, row.after, now)); err != nil {
			t.Fatal(err)
		}
		var got []string
		for line := range strings.Lines(stdout.String()) {
			var c change
			if err := json.Unmarshal([]byte(line), &c); err != nil {
				t.Fatal(err)
			}
			s := string(c.Event) + " " + c.Client
			if c.Why != "" {
				s += ": " + c.Why
			}
			got = append(got, s)
		}
		if strings.Join(got, ", ") != row.want {
			t.Errorf("got %q, want %q", got, row.want)
		}
	}
}

// stopsAt is a writer that ends something when it has written a word.
type stopsAt struct {
	bytes.Buffer
	word string
	stop func()
}

// Write keeps what it gets.
func (s *stopsAt) Write(p []byte) (int, error) {
	n, err := s.Buffer.Write(p)
	if strings.Contains(s.String(), s.word) {
		s.stop()
	}
	return n, err
}

func TestWatch_OfALockThatRests_DoesNotSayThatItIsHeld(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	cooldown, err := w.other.Mutex("a", &interlock.LockOptions{MinHold: time.Hour}).Lock(t.Context())
	if err == nil {
		err = cooldown.Unlock(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	held, err := w.other.Lock(t.Context(), "b")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	stdout := &stopsAt{word: "  b (mutex)  ", stop: cancel} // a comes before b
	a := &app{stdout: stdout, stderr: io.Discard, url: "faulty://" + w.name, timeout: patience, output: text}
	if err := a.watch(ctx, "", time.Hour); err != nil {
		t.Error(err)
	}
	got := stdout.String()
	if strings.Count(got, "\n") != 1 || !strings.Contains(got, "  held      b (mutex)  other:1") {
		t.Errorf("got %q", got)
	}
	if err := held.Unlock(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestWatch_EndsWithItsContext(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var stdout, stderr bytes.Buffer
	a := &app{stdout: &stdout, stderr: &stderr, url: "faulty://" + w.name, timeout: time.Second, output: text}
	if err := a.watch(ctx, "", time.Hour); err != nil {
		t.Logf("told as an error, which is fine for a context that had ended before: %v", err)
	}
}
