package redislock

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servers"
)

// book is a set of scripts: those of the driver, or mutants of them.
type book struct{ acquire, release, requeue, breaking, renew, look *Script }

func scriptsAsTheyAre() *book {
	return &book{
		acquire: acquireScript, release: releaseScript, requeue: requeueScript, breaking: breakScript,
		renew: renewScript,
		look:  lookScript,
	}
}

// stage is a lock on a server, on which scripts are run by hand. The first thing that goes wrong is kept in err, and
// nothing is done any more.
type stage struct {
	ctx    context.Context //nolint:containedctx // of one check
	server *servers.RedisNode
	conn   *servers.RedisConn
	ears   *servers.RedisConn // subscribed to heard
	book   *book
	prefix string
	name   string // of the lock's key, behind the prefix
	err    error

	bundles bool // plain requests are run in a bundle with others

	last  time.Time     // when the last command was answered, or a pause was to end
	stood time.Duration // the longest that was between two commands, or took to answer one
}

const (
	// stoodStill is a halt after which what a check says may be due to it: leases and claims end meanwhile.
	stoodStill = blink / 10
	// stageTries is how often it is checked at most then.
	stageTries = 5
)

// The channels of requests.
const (
	heard = "push:heard" // that of a process
	deaf  = "deaf"       // nobody has subscribed to it
)

var stages atomic.Int64

// eachWay checks something with requests that are run by themselves, and then with plain ones in bundles.
func eachWay(t *testing.T, server *servers.RedisNode, check func(s *stage)) {
	t.Helper()
	for _, bundles := range []bool{false, true} {
		err := play(t, server, scriptsAsTheyAre(), bundles, func(err error) bool { return err == nil }, check)
		if err != nil {
			t.Fatalf("in bundles: %v: %v", bundles, err)
		}
	}
}

// play checks something, and again as long as it does not come to what is wanted and the machine stood still meanwhile:
// this process or the server.
func play(
	t *testing.T, server *servers.RedisNode, b *book, bundles bool, wanted func(err error) bool, check func(s *stage),
) error {
	t.Helper()
	for try := 1; ; try++ {
		s := newStage(t, server, b)
		s.bundles = bundles
		check(s)
		if wanted(s.err) || s.stood < stoodStill || try == stageTries {
			return s.err
		}
		t.Logf("once more, because the machine stood still for %v: %v", s.stood, s.err)
	}
}

// newStage returns a lock that nobody uses.
func newStage(t *testing.T, server *servers.RedisNode, b *book) *stage {
	t.Helper()
	s := &stage{ctx: t.Context(), server: server, book: b, prefix: fmt.Sprintf("stage%d:", stages.Add(1)), name: "lock"}
	var err error
	if s.conn, err = server.Dial(s.ctx); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.conn.Close() })
	if s.ears, err = server.Dial(s.ctx); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.ears.Close() })
	if _, err := s.ears.Do(s.ctx, "SUBSCRIBE", s.prefix+heard); err != nil {
		t.Fatal(err)
	}
	s.last = time.Now()
	return s
}

func (s *stage) lock() string          { return s.prefix + s.name }
func (s *stage) floor() string         { return s.prefix + "floor:{a}" }
func (s *stage) tomb(id string) string { return s.prefix + "gone:{a}:" + id }

// do runs a command.
func (s *stage) do(args ...string) any {
	if s.err != nil {
		return nil
	}
	answer, err := s.conn.Do(s.ctx, args...)
	s.answered(args[0], err)
	return answer
}

// answered notes how a command ended.
func (s *stage) answered(command string, err error) {
	if err != nil {
		s.err = fmt.Errorf("%s: %w", command, err)
	}
	now := time.Now()
	s.last, s.stood = now, max(s.stood, now.Sub(s.last))
}

func (s *stage) text(args ...string) string { return fmt.Sprint(s.do(args...)) }

// number is the answer of a command as a number.
func (s *stage) number(args ...string) int64 {
	n, _ := strconv.ParseInt(s.text(args...), 10, 64)
	return n
}

// run runs a script and returns its answer.
func (s *stage) run(script *Script, keys []string, args ...string) string {
	if s.bundles {
		if kind := bundle.Letter(&Call{Script: script, Keys: keys, Args: args}); kind != 0 {
			return s.inBundle(string(kind), keys, args)
		}
	}
	all := append([]string{strconv.Itoa(len(keys))}, keys...)
	return fmt.Sprint(s.eval(script, append(all, args...)...))
}

// eval runs a script by its name, or by its source if the server does not know it yet: a crowd of requests with the
// source in each would keep the machine busy with nothing else.
func (s *stage) eval(script *Script, rest ...string) any {
	if s.err != nil {
		return nil
	}
	answer, err := s.conn.Do(s.ctx, append([]string{"EVALSHA", script.SHA()}, rest...)...)
	if err != nil && strings.HasPrefix(err.Error(), "NOSCRIPT") {
		return s.do(append([]string{"EVAL", script.Source()}, rest...)...)
	}
	s.answered("EVALSHA", err)
	return answer
}

// inBundle runs a plain request between two others, of a lock in another slot.
func (s *stage) inBundle(kind string, keys, args []string) string {
	other := ask{id: "other"}
	its := []string{s.prefix + "other", s.prefix + "floor:{b}", s.prefix + "gone:{b}:other"}
	all := append(append(append([]string{"9"}, its...), keys...), its...)
	all = append(all, "a"+kind+"r")
	all = append(append(append(all, s.args(other)[:4]...), args...), "other")
	answers, _ := s.eval(bundleScript, all...).([]any)
	if s.err != nil {
		return ""
	}
	if err, failed := answers[1].(error); failed {
		s.err = fmt.Errorf("EVAL: %w", err)
	}
	return fmt.Sprint(answers[1])
}

// tries runs a script that may be refused, and returns its answer or the error.
func (s *stage) tries(f func()) (refusal error) {
	if s.err == nil {
		f()
		refusal, s.err = s.err, nil
	}
	return refusal
}

// ask is a request. The zero value of a field is the default.
type ask struct {
	id, mode, way, owner, channel string
	beside                        string // the hold beside which it asks
	retains                       bool   // its client may keep the lock when nobody holds it any more
	weight, limit, tokens         int
	lease, claim, place           time.Duration // place is for how long one in the queue counts
}

// args are the arguments of acquire.
func (s *stage) args(a ask) []string {
	or := func(v, def string) string {
		if v == "" || v == "0" {
			return def
		}
		return v
	}
	lease := or(inMillis(a.lease), "60000")
	tokens := or(strconv.Itoa(a.tokens), "1")
	how := "X"
	if a.mode != "" && a.mode != how {
		how = fmt.Sprintf("%s %s %d %s %s", a.mode, or(strconv.Itoa(a.weight), "1"), a.limit, a.beside, a.owner)
	}
	mark := ""
	if a.retains {
		mark = `"r":1,`
	}
	tail := fmt.Sprintf(`%s %s %s %s %s %s {%s"o":"%s","c":"host 7","l":"%s"}`, or(a.way, "p"),
		or(inMillis(a.claim), "2000"), or(inMillis(a.place), "5000"), lease, tokens, s.prefix+or(a.channel, heard),
		mark, a.owner, a.id)
	return []string{a.id, lease, tokens, tail, how}
}

func (s *stage) keys(id string) []string { return []string{s.lock(), s.floor(), s.tomb(id)} }

func (s *stage) acquire(a ask) reply {
	keys := s.keys(a.id)
	if a.beside != "" {
		keys = append(keys, s.tomb(a.beside))
	}
	args := s.args(a)
	if args[4] == plainRequest {
		args = args[:4]
	}
	got := parseReply(Reply{Text: s.run(s.book.acquire, keys, args...)})
	got.asAsked(max(a.tokens, 1), a.id, a.lease)
	return got
}

func (s *stage) requeue(give string, a ask) reply { return s.requeueAs("", give, a) }

// requeueAs gives back in the way of that kind: only an empty one is for the quick part.
func (s *stage) requeueAs(kind, give string, a ask) reply {
	args := append(s.args(a), give, kind, "10000")
	return parseReply(Reply{Text: s.run(s.book.requeue, append(s.keys(a.id), s.tomb(give)), args...)})
}

func (s *stage) release(id string) string { return s.end(id, "", 0) }
func (s *stage) undo(id string) string    { return s.end(id, "u", 0) }

func (s *stage) end(id, how string, keep time.Duration) string {
	args := []string{id, how, "10000", inMillis(keep)}
	if how == "" && keep == 0 {
		args = args[:1]
	}
	return s.run(s.book.release, s.keys(id), args...)
}

func (s *stage) renew(id string, lease time.Duration) string {
	return s.run(s.book.renew, []string{s.lock()}, id, inMillis(lease), "0", `{"o":"","c":"host 7","l":"`+id+`"}`)
}

func (s *stage) breakLock(token uint64) string {
	return s.run(s.book.breaking, s.keys(""), strconv.FormatUint(token, 10))
}

// speaks has the process of the channel heard say that it is alive for so long.
func (s *stage) speaks(lasts time.Duration) {
	s.run(aliveScript, []string{s.prefix + "alive"}, "heard", inMillis(lasts))
}

// look returns what operators see, and false if the lock is not in use.
func (s *stage) look() (driver.LockInfo, bool) {
	var p pages
	for p.add(s.run(s.book.look, []string{s.lock()})); p.next != nil && s.err == nil; {
		p.add(s.run(s.book.look, []string{s.lock()}, p.next...))
	}
	got := seen(driver.Key{Kind: driver.KindRWMutex, Name: "stage"}, &p)
	if got.err != nil && s.err == nil {
		s.err = got.err
	}
	return got.info, got.inUse
}

// show returns who holds and who waits, as in "a b < c": a and b hold, c waits.
func (s *stage) show() string {
	info, _ := s.look()
	var words []string
	for _, h := range info.Holders {
		words = append(words, h.Label)
	}
	words = append(words, "<")
	for _, w := range info.Waiters {
		words = append(words, w.Label)
	}
	return strings.Join(words, " ")
}

// pushes returns what was pushed since the last call, the first two words of each: the kind and the ID.
func (s *stage) pushes() string {
	var all []string
	for _, text := range s.texts() {
		all = append(all, strings.Join(strings.Fields(text)[:2], " "))
	}
	return strings.Join(all, ", ")
}

// texts returns what was pushed since the last call.
func (s *stage) texts() (all []string) {
	s.do("PUBLISH", s.prefix+heard, "end of the pushes")
	for s.err == nil {
		m, err := s.ears.Receive(s.ctx)
		if err != nil {
			s.err = err
			break
		}
		parts, _ := m.([]any)
		text := fmt.Sprint(parts[len(parts)-1])
		if strings.HasPrefix(text, "end") {
			break
		}
		all = append(all, text)
	}
	return all
}

// push returns the last grant that was pushed since the last call.
func (s *stage) push() (last reply) {
	for _, text := range s.texts() {
		if word, rest, _ := strings.Cut(text, " "); word == "G" {
			_, rest, _ = strings.Cut(rest, " ")
			last = parseReply(Reply{Text: "G " + rest})
		}
	}
	s.want("the push", last.verdict, granted)
	return last
}

// pass lets leases run on the server's clock.
func (s *stage) pass(d time.Duration) {
	if s.err != nil {
		return
	}
	d += 2 * time.Millisecond // the server counts whole milliseconds
	s.last = time.Now().Add(d)
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.ctx.Done():
		s.err = s.ctx.Err()
	}
}

// want notes an error unless got is what it should be.
func (s *stage) want(what string, got, want any) {
	if s.err == nil && got != want {
		s.err = fmt.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// must notes an error unless it is so.
func (s *stage) must(is bool, format string, args ...any) {
	if s.err == nil && !is {
		s.err = fmt.Errorf(format, args...)
	}
}

// String is for messages of want.
func (o outcome) String() string {
	return [...]string{
		unreadable: "unreadable", granted: "granted", queued: "queued", parked: "parked", held: "held",
		wouldWait: "would wait", over: "over", broken: "broken", adopted: "adopted", nested: "nested", stuck: "stuck",
		orphaned: "orphaned", conflict: "conflict", newer: "newer",
	}[o]
}

// inBothParts runs a check with requests that the quick parts of the scripts answer, and again with such that they
// leave to the general ones.
func inBothParts(check func(s *stage, as func(a ask) ask)) func(s *stage) {
	return func(s *stage) {
		check(s, func(a ask) ask { return a })
		s.do("DEL", s.lock())
		check(s, func(a ask) ask {
			a.mode, a.owner = "x", "owner of "+a.id
			return a
		})
	}
}
