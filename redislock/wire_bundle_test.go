package redislock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/interlock-go/interlock/internal/servers"
	"github.com/interlock-go/interlock/redislock/conn"
)

// bundled is a wire whose plain requests go in bundles.
type bundled struct {
	*wire
	t      *testing.T
	server *servers.RedisNode
}

func startBundled(t *testing.T, o *wireOptions, heard func(kind, channel, message string)) *bundled {
	t.Helper()
	server := servers.RedisServer(t, nil)
	b := &bundled{openWire(t, server.Addr(), o, heard), t, server}
	b.gathered.on = true
	return b
}

// wants is a plain request for a lock in a slot.
func wants(name, slot, id string) *Call {
	return &Call{
		Script: acquireScript, Keys: []string{"interlock:" + name, "interlock:floor:{" + slot + "}", "interlock:gone:{" + slot + "}:" + id},
		Args: []string{id, "60000", "1", `p 2000 5000 60000 1 interlock:heard {"o":"","c":"","l":""}`},
	}
}

// returns is a plain release of what wants has got.
func returns(name, slot, id string) *Call {
	c := wants(name, slot, id)
	c.Script, c.Args = releaseScript, c.Args[:1]
	return c
}

// together makes the calls before anything is sent, and returns what each is told: the text or the error.
func (b *bundled) together(calls ...*Call) []string {
	b.t.Helper()
	got := make([]string, len(calls))
	ps := make([]*request, len(calls))
	b.mu.Lock()
	for i, c := range calls {
		ps[i] = b.bundle(b.gathered.kindOf(c, byName), c)
	}
	b.mu.Unlock()
	var all sync.WaitGroup
	for i, p := range ps {
		all.Go(func() {
			b.mu.Lock()
			err := b.finish(b.t.Context(), p)
			if err == nil {
				err = p.err
			}
			if got[i] = p.text; err != nil {
				got[i] = err.Error()
			}
		})
	}
	all.Wait()
	return got
}

// runs is how many scripts the server has run.
func (b *bundled) runs() (n int) {
	b.t.Helper()
	info, err := b.do(b.t.Context(), "INFO", "commandstats")
	if err != nil {
		b.t.Fatal(err)
	}
	for line := range strings.SplitSeq(fmt.Sprint(info), "\r\n") {
		var calls int
		for _, name := range []string{"eval", "evalsha"} {
			if _, err := fmt.Sscanf(line, "cmdstat_"+name+":calls=%d,", &calls); err == nil {
				n += calls
			}
		}
	}
	return n
}

// says fails unless each answer begins as it should.
func (b *bundled) says(got []string, want ...string) {
	b.t.Helper()
	for i := range want {
		if !strings.HasPrefix(got[i], want[i]) {
			b.t.Errorf("request %d: got %q, want %q...", i, got[i], want[i])
		}
	}
}

func TestBundle_OfPlainRequests_IsOneRun(t *testing.T) {
	var pushes []string
	b := startBundled(t, &wireOptions{}, func(kind, _, message string) {
		if kind == "message" {
			pushes = append(pushes, message) // read after an answer that comes later
		}
	})
	if err := b.subscribe(t.Context(), "subscribe", "interlock:heard"); err != nil {
		t.Fatal(err)
	}
	b.says(b.together(wants("x", "1", "a"), wants("y", "2", "b"), wants("z", "3", "c")), "G ", "G ", "G ")
	b.says(b.together(wants("x", "1", "d"), returns("y", "2", "b"), wants("v", "4", "e"), returns("z", "3", "wrong")),
		"Q ", "ok", "G ", "lost taken")
	b.says(b.together(returns("x", "1", "a"), wants("w", "5", "f")), "ok", "G ")
	if n := b.runs(); n != 3 {
		t.Errorf("9 requests were %d runs", n)
	}
	if len(pushes) != 1 || !strings.HasPrefix(pushes[0], "G d ") {
		t.Errorf("pushed: %q", pushes)
	}
}

// TestBundle_OfRequestsThatTouch is about what one request finds that another one of its bundle has changed.
func TestBundle_OfRequestsThatTouch_IsAsIfTheyWereAlone(t *testing.T) {
	b := startBundled(t, &wireOptions{}, nil)
	got := b.together(wants("x", "1", "a"), wants("x", "1", "b"), wants("y", "1", "c"), returns("x", "1", "a"), wants("z", "1", "d"))
	b.says(got, "G ", "Q ", "G ", "ok", "G ")
	var now, first, second uint64
	if _, err := fmt.Sscanf(got[0], "G %d", &first); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Sscanf(got[2], "G %d %d 1 c 60000", &now, &second); err != nil || second <= first {
		t.Errorf("the token of y is %d after %d of x (%v)", second, first, err)
	}
}

func TestBundle_InWhichOneFails_RunsTheOthers(t *testing.T) {
	b := startBundled(t, &wireOptions{}, nil)
	if _, err := b.do(t.Context(), "RPUSH", "interlock:x", "not a lock"); err != nil {
		t.Fatal(err)
	}
	got := b.together(wants("w", "1", "a"), wants("x", "2", "b"), wants("y", "3", "c"))
	b.says(got, "G ", "WRONGTYPE ", "G ")
	if j := judge(serverError(got[1]), ""); j.verdict != unknown {
		t.Errorf("the failure is taken for one before anything was run: %v", j)
	}
}

// TestBundle_WhoseRequestIsGivenUp: it is sent all the same, as its place in the queue of answers is taken.
func TestBundle_WhoseRequestIsGivenUp_AnswersTheOthers(t *testing.T) {
	b := startBundled(t, &wireOptions{}, nil)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	b.mu.Lock()
	given, kept := b.bundle('a', wants("x", "1", "a")), b.bundle('a', wants("y", "2", "b"))
	if err := b.finish(ended, given); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	b.mu.Lock()
	if err := b.finish(t.Context(), kept); err != nil || !strings.HasPrefix(kept.text, "G ") {
		t.Errorf("%v: %q", err, kept.text)
	}
	b.says(b.together(wants("x", "1", "a"), wants("z", "3", "c")), "G ", "G ")
}

func TestBundle_ThatTheWireEndsBefore_IsUnsent(t *testing.T) {
	b := startBundled(t, &wireOptions{}, nil)
	b.mu.Lock()
	p := b.bundle('a', wants("x", "1", "a"))
	b.fail(errBroken)
	if err := b.finish(t.Context(), p); err != nil || !errors.Is(p.err, conn.ErrUnsent) {
		t.Errorf("%v, %v", err, p.err)
	}
}

func TestBundle_IsAtMostSoLong(t *testing.T) {
	b := startBundled(t, &wireOptions{}, nil)
	var calls []*Call
	for i := range 3 * mostBundled {
		calls = append(calls, wants(fmt.Sprint("x", i), "1", fmt.Sprint("a", i)))
	}
	for _, got := range b.together(calls...) {
		b.says([]string{got}, "G ")
	}
	if n := b.runs(); n != 3 {
		t.Errorf("%d runs", n)
	}
}

// TestBundle_WhileAnswersAreAwaited: what comes while the server has enough to do is gathered, unless it is far away.
func TestBundle_WhileAnswersAreAwaited_GathersMore(t *testing.T) {
	b := startBundled(t, &wireOptions{}, nil)
	other := startWire(t, b.server.Addr(), nil)
	others := func(args ...string) {
		t.Helper()
		if _, err := other.do(t.Context(), args...); err != nil {
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
			if text, err := b.call(t.Context(), wants(name, "1", "of "+name), byName); err != nil || !strings.HasPrefix(text, "G ") {
				t.Errorf("%s: %q, %v", name, text, err)
			}
		})
	}
	b.says(b.together(wants("x", "1", "x"), wants("y", "1", "y")), "G ", "G ") // the scripts are known now
	for _, c := range []*Call{wants("z", "1", "z"), returns("z", "1", "z")} {
		if _, err := b.call(t.Context(), c, inSource); err != nil {
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
