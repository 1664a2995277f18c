package resp

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/interlock-go/interlock/redislock/conn"
)

func TestBundle_OfCallsThatCanBeInOne_IsOneRun(t *testing.T) {
	b := startBundled(t, nil)
	b.says(b.together(wants("x", "a"), wants("y", "b"), wants("z", "c")), "G a", "G b", "G c")
	b.says(b.together(wants("x", "d"), returns("y", "b"), wants("v", "e"), returns("z", "wrong")), "Q a", "ok", "G e",
		"lost")
	b.says(b.together(returns("x", "a"), wants("w", "f")), "ok", "G f")
	if n := b.runs(); n != 1+3 {
		t.Errorf("9 calls were %d runs, want 3 and one before, by which the server knows the script", n)
	}
}

func TestBundle_InWhichOneFails_RunsTheOthers(t *testing.T) {
	b := startBundled(t, nil)
	if _, err := b.Do(t.Context(), "RPUSH", "x", "not a text"); err != nil {
		t.Fatal(err)
	}
	got := b.together(wants("w", "a"), wants("x", "b"), wants("y", "c"))
	b.says(got, "G a", "WRONGTYPE ", "G c")
}

// TestBundle_WhoseRequestIsGivenUp: it is sent all the same, as its place in the queue of answers is taken.
func TestBundle_WhoseRequestIsGivenUp_AnswersTheOthers(t *testing.T) {
	b := startBundled(t, nil)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	b.mu.Lock()
	given, kept := b.bundle('t', wants("x", "a")), b.bundle('t', wants("y", "b"))
	if err := b.finish(ended, given); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	b.mu.Lock()
	if err := b.finish(t.Context(), kept); err != nil || !strings.HasPrefix(kept.text, "G ") {
		t.Errorf("%v: %q", err, kept.text)
	}
	b.says(b.together(wants("x", "a"), wants("z", "c")), "G ", "G ")
}

func TestBundle_ThatTheWireEndsBefore_IsUnsent(t *testing.T) {
	b := startBundled(t, nil)
	b.mu.Lock()
	p := b.bundle('t', wants("x", "a"))
	b.fail(ErrBroken)
	if err := b.finish(t.Context(), p); err != nil || !errors.Is(p.err, conn.ErrUnsent) {
		t.Errorf("%v, %v", err, p.err)
	}
}

func TestBundle_IsAtMostSoLong(t *testing.T) {
	b := startBundled(t, nil)
	var calls []*conn.Call
	for i := range 3 * mostBundled {
		calls = append(calls, wants(fmt.Sprint("x", i), fmt.Sprint("a", i)))
	}
	for _, got := range b.together(calls...) {
		b.says([]string{got}, "G ")
	}
	if n := b.runs(); n != 1+3 {
		t.Errorf("%d runs, want 3 and one before, by which the server knows the script", n)
	}
}

// TestBundle_WhileAnswersAreAwaited: what comes while the server has enough to do is gathered, unless it is far away.
func TestBundle_WhileAnswersAreAwaited_GathersMore(t *testing.T) {
	b := startBundled(t, nil)
	other := start(t, b.server.Addr(), nil)
	others := func(args ...string) {
		t.Helper()
		if _, err := other.Do(t.Context(), args...); err != nil {
			t.Fatal(err)
		}
	}
	state := func(ahead, gathered int) {
		t.Helper()
		eventually(t, fmt.Sprintf("%d commands are under way and %d requests gathered", ahead, gathered), func() bool {
			b.mu.Lock()
			defer b.mu.Unlock()
			return b.gathered.ahead == ahead && b.gathered.n == gathered
		})
	}
	var all sync.WaitGroup
	ask := func(name string) {
		all.Go(func() {
			if text, err := b.Call(t.Context(), wants(name, "of "+name), ByName); err != nil ||
				!strings.HasPrefix(text, "G ") {
				t.Errorf("%s: %q, %v", name, text, err)
			}
		})
	}
	b.says(b.together(wants("x", "x"), wants("y", "y")), "G ", "G ") // the scripts are known now
	for _, c := range []*conn.Call{wants("z", "z"), returns("z", "z")} {
		if _, err := b.Call(t.Context(), c, InSource); err != nil {
			t.Fatal(err)
		}
	}
	before := b.runs()
	b.mu.Lock()
	b.gathered.trip = 0 // whatever the machine's pace
	b.mu.Unlock()
	others("CLIENT", "PAUSE", "60000", "WRITE")
	for i := range 7 {
		ask(fmt.Sprint("near", i))
		state(min(i+1, mostAhead), max(0, i+1-mostAhead))
	}
	others("CLIENT", "UNPAUSE")
	all.Wait()
	if n := b.runs() - before; n != mostAhead+1 {
		t.Errorf("7 requests were %d runs", n)
	}

	b.mu.Lock()
	b.gathered.trip = longTrip
	b.mu.Unlock()
	others("CLIENT", "PAUSE", "60000", "WRITE")
	for i := range 7 {
		ask(fmt.Sprint("far", i))
		state(i+1, 0)
	}
	others("CLIENT", "UNPAUSE")
	all.Wait()
}
