package redislock

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/internal/longrun"
	"github.com/interlock-go/interlock/internal/servers"
)

// States that are hard to reach through the driver. What the rules of the protocol say is in rules_test.go.
func TestScripts_InStatesThatAreHardToReach(t *testing.T) {
	server := servers.RedisServer(t, nil)
	for _, c := range []struct {
		name  string
		check func(s *stage)
	}{
		{"a lock of a later format is refused and left alone", checkNewer},
		{"a thin lock becomes a hash and stays the same lock", checkThickening},
		{"what operators see is refreshed in each form", checkRenewedMeta},
		{"what operators see of a crowd is refreshed, and each ends by itself", checkRenewedCrowd},
		{"a crowd whose ends were lost keeps others out, and ends", checkLostEnds},
		{"a crowd whose ends were lost is renewed", checkLostEndsOfARenewal},
		{"a lock without a time to live keeps others out", checkPersisted},
		{"a lock without a time to live ends with its holder", checkPersistedOfTheDead},
		{"a lock without a time to live lasts as long as it was extended", checkPersistedAfterAnExtension},
		{"a late renewal ends no lock without a time to live", checkPersistedRetention},
		{"a look at many is told in pages", checkPagedLook},
		{"a resize looks at many in pages", checkPagedResize},
		{"a break looks at many in pages", checkPagedBreak},
		{"hundreds of readers are let in by many runs, each of which lets in a few", checkManyReaders},
		{"without memory an acquire is refused and changes nothing", checkAcquireWithoutMemory},
		{"every key ends by itself but the floor", checkKeysEnd},
		{"gaps in the queue leave no lock behind", checkGaps},
		{"who heard no push does not push an upgrade out of the queue", checkTakenPlace},
		{"who lets all pushes pass goes to the end, once", checkSlow},
		{"who gives up when its push has lapsed leaves nothing", checkUndoOfALapsedPush},
		{"an upgrade that lost its read is told that it is stuck", checkStuckWaiter},
		{"a requeue goes behind everybody, and happens once", checkRequeue},
		{"a hold kept after its release keeps others out and answers to nobody", checkKept},
		{"a quick release leaves the next one as the general part does", checkQuickRelease},
		{"a quick requeue leaves the others as the general part does", checkQuickRequeue},
		{"a requeue before one who hears nothing is for the one behind", checkUnheardRequeue},
		{"a wait that may only be tried is told so", checkWouldWait},
		{"who wants more than there is any more does not go back to the queue", checkResizedBelowAPush},
		{"a pushed grant is adopted before it is claimed", checkAdoptedUnclaimed},
		{"thousands of waiters are served in turn", checkManyWaiters},
		{"thousands of dead waiters are swept at once", checkManyDead},
	} {
		t.Run(c.name, func(t *testing.T) {
			eachWay(t, server, c.check)
		})
	}
}

func checkNewer(s *stage) {
	thin, hash := "3 a whatever follows", []string{
		"HSET", s.lock(), "v", "3", "h", "?", "l", "", "a", "0", "z", "0", "k", "0",
	}
	for _, write := range [][]string{{"SET", s.lock(), thin}, hash} {
		s.do("DEL", s.lock())
		s.do(write...)
		before := s.text("DUMP", s.lock())
		for _, mode := range []string{"", "x"} {
			got := s.acquire(ask{id: "a", mode: mode})
			s.want("acquire", got.verdict, newer)
			s.want("its version", got.detail, "3")
			s.want("a try", s.acquire(ask{id: "a", mode: mode, way: "t"}).verdict, newer)
		}
		s.want("release", s.release("a"), "newer 3")
		s.want("undo", s.undo("a"), "newer 3")
		s.want("requeue", s.requeue("a", ask{id: "b"}).verdict, newer)
		s.want("break", s.breakLock(1), "newer 3")
		s.want("renewal", s.renew("a", time.Minute), "n")
		s.want("look", strings.Contains(s.run(s.book.look, []string{s.lock()}), `"v":"3"`), true)
		s.want("the lock", s.text("DUMP", s.lock()), before)
	}
}

func checkThickening(s *stage) {
	g := s.acquire(ask{id: "a", tokens: 3, lease: 30 * time.Second})
	s.want("the form", s.text("TYPE", s.lock()), "string")
	s.run(s.book.renew, []string{s.lock()}, "a", "30000", "2", `{"o":"later","l":"a"}`) // passed on twice
	ends := s.number("PEXPIRETIME", s.lock())
	refused := s.acquire(ask{id: "b", way: "t"})
	s.want("a try leaves it thin", s.text("TYPE", s.lock()), "string")
	s.want("the token in use", refused.holder.token, g.token+2)
	begin := time.Now()
	q := s.acquire(ask{id: "b"})
	// within which the server may have stood still between two readings of its clock
	took := time.Since(begin).Milliseconds()
	s.want("the form with a waiter", s.text("TYPE", s.lock()), "hash")
	s.want("the token in use", q.holder.token, g.token+2)
	s.want("who holds", q.holder.meta, `{"o":"later","l":"a"}`)
	s.must(q.holder.until >= ends-1 && q.holder.until <= ends+1+took, "it ends at %d, ended at %d", q.holder.until,
		ends)
	again := s.acquire(ask{id: "a", lease: 30 * time.Second})
	s.want("a copy", fmt.Sprint(again.verdict, again.token, again.tokens, again.nonce),
		fmt.Sprint(granted, g.token, 3, "a"))
	s.want("break by the last token", s.breakLock(g.token+2), "ok")
	s.want("the lock", s.show(), "b <")
	s.release("b")
	s.want("the form of a free lock", s.text("TYPE", s.lock()), "none")
	s.acquire(ask{id: "c"})
	s.want("the form anew", s.text("TYPE", s.lock()), "string")
}

// checkRenewedMeta renews a hold in all forms: a string, text in a hash, and MessagePack in a hash.
func checkRenewedMeta(s *stage) {
	g := s.acquire(ask{id: "a", tokens: 4})
	for form, thicken := range []func(){
		func() {},
		func() { s.acquire(ask{id: "b"}) },
		func() {
			s.release("b")
			s.undo("b")
			s.release("a")
			g = s.acquire(ask{id: "c", mode: "x", owner: "A", tokens: 4})
			s.acquire(ask{id: "d", mode: "s", owner: "A"})
		},
	} {
		thicken()
		id, mode, owner := "a", "", ""
		if form == 2 {
			id, mode, owner = "c", "x", "A"
		}
		for pass := 2 * form; pass < 2*form+3; pass++ {
			meta := fmt.Sprintf(`{"o":"owner %d","c":"host 7","l":"%s"}`, pass, id)
			kept := []string{"k", "w", "k"}[form] // b waits
			s.want("renewal", s.run(s.book.renew, []string{s.lock()}, id, "60000", fmt.Sprint(pass), meta), kept)
			info, _ := s.look()
			s.must(len(info.Holders) > 0 && info.Holders[0].Owner == fmt.Sprint("owner ", pass) &&
				info.Holders[0].Label == id &&
				info.Holders[0].Token == g.token, "form %d shows %+v", form, info.Holders)
			s.want("the token in use", s.acquire(ask{id: "t", way: "t", mode: "x"}).holder.token, g.token+uint64(pass))
			again := s.acquire(ask{id: id, mode: mode, owner: owner, tokens: 4})
			s.want("a copy", fmt.Sprint(again.verdict, again.token, again.tokens, again.nonce),
				fmt.Sprint(granted, g.token, 4, id))
		}
	}
}

// checkRenewedCrowd renews holds that share a lock, among which none passes on.
func checkRenewedCrowd(s *stage) {
	for _, id := range []string{"a", "b", "c"} {
		s.acquire(ask{id: id, mode: "s", lease: time.Second})
	}
	for round := range 3 {
		meta := fmt.Sprintf(`{"o":"owner %d","c":"%s","l":"b"}`, round, strings.Repeat("x", 10*round))
		s.want("renewal",
			s.run(s.book.renew, []string{s.lock(), s.lock()}, "b", "60000", "0", meta, "gone", "60000", "0", meta),
			"kl")
		info, _ := s.look()
		s.must(len(info.Holders) == 3 && info.Holders[1].Owner == fmt.Sprint("owner ", round), "round %d shows %+v",
			round, info.Holders)
		s.must(len(info.Holders) == 3 && time.Until(info.Holders[1].Until) > 50*time.Second, "round %d: it ends %v",
			round, info.Holders)
	}
	s.want("the lock", s.show(), "a b c <")
	s.want("a copy", s.acquire(ask{id: "b", mode: "s"}).verdict, granted)
	for _, id := range []string{"b", "a", "c"} {
		s.want("release", s.release(id), "ok")
	}
	s.want("what is left", s.text("EXISTS", s.lock(), s.prefix+"ends:{a}:lock"), "0")
}

// checkLostEnds has the server lose the sorted set beside a crowd.
func checkLostEnds(s *stage) {
	s.acquire(ask{id: "a", mode: "s", lease: 50 * time.Millisecond})
	s.acquire(ask{id: "b", mode: "s", lease: time.Minute})
	s.do("DEL", s.prefix+"ends:{a}:lock")
	s.want("a writer", s.acquire(ask{id: "w", way: "t", mode: "x"}).verdict, held)
	s.want("renewal", s.renew("b", time.Minute), "k")
	s.pass(60 * time.Millisecond)
	s.want("the lock when one has ended", s.acquire(ask{id: "c", mode: "s"}).verdict, granted)
	s.want("the lock", s.show(), "b c <")
}

func checkAcquireWithoutMemory(s *stage) {
	for _, mode := range []string{"", "x", "s"} {
		s.full(func() {
			err := s.tries(func() { s.acquire(ask{id: "a", mode: mode}) })
			s.must(err != nil && strings.Contains(err.Error(), "OOM"), "an acquire in mode %q: %v", mode, err)
			s.want("keys", len(s.all()), 0)
		})
	}
	s.acquire(ask{id: "a"})
	s.full(func() {
		_ = s.tries(func() { s.acquire(ask{id: "b"}) }) // whether it queues or not: a must not lose the lock
		s.want("a", s.show()[:3], "a <")
		s.want("release", s.release("a"), "ok")
	})
}

func checkKeysEnd(s *stage) {
	// A minute is the longest lease here, and a queue lasts seven and a half minutes more. Whether there is one when
	// "c" has its lock depends on the machine's pace: "b" is waiting again when its claim has run out first.
	ends := func(when string) {
		for _, key := range s.all() {
			lasts := s.number("PTTL", key)
			ended := lasts == -2 // since it was listed
			s.must(ended || lasts > 0 && lasts <= 511000 || strings.Contains(key, "floor:"), "%s: %s lasts %d ms", when,
				key, lasts)
		}
	}
	s.acquire(ask{id: "a", lease: 30 * time.Millisecond})
	ends("a thin lock")
	s.acquire(ask{id: "b", channel: deaf, lease: 30 * time.Millisecond, claim: 30 * time.Millisecond})
	ends("a queue")
	s.acquire(ask{id: "c", lease: time.Minute})
	ends("two that wait")
	s.release("a")
	ends("a push")
	s.acquire(ask{id: "c", lease: time.Minute})
	ends("a claim")
	s.end("c", "r", 20*time.Second)
	ends("kept after a release")
	s.undo("c")
	ends("undone")
	s.pass(30 * time.Millisecond)
	s.acquire(ask{id: "r", mode: "s", lease: 30 * time.Millisecond})
	s.undo("b")
	s.acquire(ask{id: "r", mode: "s", lease: 30 * time.Millisecond})
	ends("a reader")
	s.pass(40 * time.Millisecond)
	for _, key := range s.all() {
		s.must(strings.Contains(key, "floor:") || strings.HasPrefix(key, s.tomb("")),
			"left when all were dead: %s for %d ms", key, s.number("PTTL", key))
	}
}

// checkGaps has waiters leave from the middle of the queue before it is served.
func checkGaps(s *stage) {
	for _, leaving := range []string{"c", "c d", "d", "d c", "b c", "b d", "c b"} {
		for _, id := range []string{"a", "b", "c", "d"} {
			s.acquire(ask{id: id})
		}
		for _, id := range strings.Fields(leaving) {
			s.undo(id)
			s.do("DEL", s.tomb(id))
		}
		s.want("release a", s.release("a"), "ok")
		for _, id := range []string{"b", "c", "d"} {
			if strings.Contains(leaving, id) {
				continue
			}
			s.want("pushed without "+leaving, s.push().nonce, id)
			s.want("release "+id, s.release(id), "ok")
		}
		s.want("the lock without "+leaving, s.text("EXISTS", s.lock()), "0")
	}
}

func checkTakenPlace(s *stage) {
	s.acquire(ask{id: "z"})
	s.acquire(ask{id: "u", mode: "u", owner: "A", channel: deaf})
	s.acquire(ask{id: "r"})
	s.acquire(ask{id: "x", mode: "x", owner: "A", channel: deaf})
	s.release("z")
	s.want("the lock", s.show(), "r < u x")
	s.want("x keeps its place", s.acquire(ask{id: "x", mode: "x", owner: "A"}).verdict, queued)
	s.want("u keeps its place", s.acquire(ask{id: "u", mode: "u", owner: "A"}).queuePlace, 1)
	s.want("the lock", s.show(), "r < u x")
	s.pushes()
	s.release("r")
	s.want("pushed", s.pushes(), "G u, G x")
}

func checkSlow(s *stage) {
	x := ask{id: "x", claim: 4 * blink}
	s.acquire(ask{id: "h"})
	s.acquire(x)
	s.release("h")
	for range 2 {
		s.pass(4 * blink)
		s.want("y meanwhile", s.acquire(ask{id: "y"}).verdict, granted)
		s.acquire(x)
		s.release("y")
	}
	s.want("pushed", s.pushes(), "G x, G x, G x")
	s.acquire(ask{id: "y"})
	s.pass(4 * blink)
	s.acquire(x)
	s.want("the lock", s.show(), "y < x")
}

func checkUndoOfALapsedPush(s *stage) {
	for _, end := range []struct {
		name string
		by   func(id string) string
		says string
	}{
		{"undo", s.undo, "ok"},
		{"release", s.release, "lost expired"}, // the owner was in, and its claim came too late
	} {
		s.acquire(ask{id: "h"})
		s.acquire(ask{id: "x", claim: blink})
		s.release("h")
		s.want("pushed", s.pushes(), "G x")
		s.pass(blink)
		s.want(end.name, end.by("x"), end.says)
		s.want("the lock", s.show(), "<")
		s.want("what is left", s.text("TYPE", s.lock()), "none")
		s.do("DEL", s.tomb("x"))
	}
}

func checkStuckWaiter(s *stage) {
	s.acquire(ask{id: "r", mode: "s", owner: "A"})
	s.acquire(ask{id: "u", mode: "u", owner: "A"})
	s.acquire(ask{id: "other", mode: "s"})
	s.want("the upgrade", s.acquire(ask{id: "x", mode: "x", owner: "A"}).verdict, queued)
	s.release("u")
	s.want("told", s.pushes(), "X x")
	s.want("the lock", s.show(), "r other <")
}

func checkWouldWait(s *stage) {
	s.want("of a free lock", s.acquire(ask{id: "a", way: "l"}).verdict, granted)
	for _, mode := range []string{"", "s"} {
		got := s.acquire(ask{id: "b", way: "l", mode: mode})
		s.want("of a lock that is held", got.verdict, wouldWait)
		s.must(got.holder.until > 0 && strings.Contains(got.holder.meta, `"l":"a"`), "it is told of %+v", got.holder)
	}
	s.want("the lock", s.show(), "a <")
}

var crowd = longrun.Of(1000, 5000)

func (s *stage) crowd(place time.Duration) {
	s.acquire(ask{id: "holder"})
	for i := range crowd {
		s.want("a waiter's place", s.acquire(ask{id: fmt.Sprint("w", i), claim: place, place: place}).queuePlace, i+1)
	}
}

func checkManyWaiters(s *stage) {
	s.crowd(10 * time.Minute) // a machine that is very busy takes one until all have come
	info, _ := s.look()
	s.want("waiters", len(info.Waiters), crowd)
	s.want("a named owner's place", s.acquire(ask{id: "named", mode: "x", owner: "A", place: time.Minute}).queuePlace,
		crowd+1)
	s.release("holder")
	for i := range 20 {
		s.want("pushed", s.push().nonce, fmt.Sprint("w", i))
		s.release(fmt.Sprint("w", i))
	}
	for i := 21; i < crowd-1; i++ {
		s.want("undo", s.undo(fmt.Sprint("w", i)), "ok")
	}
	s.want("the lock", s.show(), fmt.Sprintf("w20 < w%d named", crowd-1))
}

// busy is for how long a processor has worked for the server: also on a machine that has other things to do.
func (s *stage) busy() time.Duration {
	if s.err != nil {
		return 0
	}
	info, err := s.server.Info(s.ctx, "cpu")
	if err != nil {
		s.err = err
	}
	var user, system float64
	if _, err := fmt.Sscan(info["used_cpu_user"], &user); err != nil {
		s.err = err
	}
	if _, err := fmt.Sscan(info["used_cpu_sys"], &system); err != nil {
		s.err = err
	}
	return time.Duration((user + system) * float64(time.Second))
}

// checkManyDead bounds what a script does in one go: the arguments of a command, and the server's time.
func checkManyDead(s *stage) {
	s.crowd(time.Millisecond)
	s.acquire(ask{id: "last"})
	s.pass(time.Millisecond)
	before := s.busy()
	s.release("holder")
	took := s.busy() - before
	s.want("pushed", s.pushes(), "A last") // a run does only so much, and has one go on who most likely lives
	for range crowd / 1000 {
		s.acquire(ask{id: "last"})
	}
	s.want("the lock", s.show(), "last <")
	s.must(took < time.Second, "the server was busy for %v", took)
	s.release("last")
	s.want("the lock", s.text("EXISTS", s.lock()), "0")
}

// checkManyReaders has a crowd wait for a writer, and counts what each run does for it.
func checkManyReaders(s *stage) {
	const readers = 400
	reader := func(i int) ask {
		return ask{id: fmt.Sprint("r", i), mode: "s", claim: 10 * time.Minute, place: 10 * time.Minute}
	}
	s.acquire(ask{id: "writer", mode: "x"})
	for i := range readers {
		s.want("a reader's place", s.acquire(reader(i)).queuePlace, i+1)
	}
	s.release("writer")
	for in := 0; in < readers && s.err == nil; {
		pushed := strings.Split(s.pushes(), ", ")
		asked := pushed[len(pushed)-1]
		for _, text := range pushed {
			if text == fmt.Sprint("G r", in) {
				in++
			}
		}
		s.must(len(pushed) <= 41, "one run has let in %d", len(pushed)-1)
		if in < readers {
			s.want("who is to go on", asked, fmt.Sprint("A r", in))
			s.want("who goes on", s.acquire(reader(in)).verdict, granted)
			in++
		}
	}
	s.want("a writer", s.acquire(ask{id: "w", way: "t", mode: "x"}).verdict, held)
	for i := range readers {
		s.want("release", s.release(fmt.Sprint("r", i)), "ok")
	}
	s.want("what is left", s.text("EXISTS", s.lock(), s.prefix+"ends:{a}:lock"), "0")
}
