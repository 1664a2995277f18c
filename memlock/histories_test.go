package memlock

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/longrun"
)

var seedFlag = flag.Uint64("seed", 0, "replay the random history with this seed")

// history drives a state machine with random steps. It judges every state by rules of its own (invariants_test.go),
// which share no code with the machine.
type history struct {
	t     *testing.T
	draw  func(n int) int // a number below n
	s     *state
	now   time.Time
	keys  []driver.Key
	ids   []ref
	trace []string

	limit   int                   // with which most permits are asked for
	adopted map[ref]bool          // they have been another's before
	newest  map[driver.Key]uint64 // the largest token ever granted
	known   map[ref]block         // what each grant said, while the machine remembers its request
}

func newHistory(t *testing.T, draw func(int) int) *history {
	return &history{
		t: t, draw: draw, s: newState(0), now: epoch,
		keys: []driver.Key{
			{Kind: driver.KindMutex, Name: "x"},
			{Kind: driver.KindRWMutex, Name: "x"},
			{Kind: driver.KindSemaphore, Name: "x"},
		},
		limit: 3, adopted: make(map[ref]bool), newest: make(map[driver.Key]uint64), known: make(map[ref]block),
	}
}

func (h *history) fail(format string, args ...any) {
	h.t.Helper()
	for _, line := range h.trace {
		h.t.Log(line)
	}
	h.t.Fatalf(format, args...)
}

// step makes one random step and checks the state after it.
func (h *history) step() {
	h.now = h.now.Add(h.pause())
	h.s.advance(h.now) // before the picture is taken: whom an expiry lets in is checked by itself
	h.check(nil)
	before := h.queues()
	what := ""
	switch h.draw(13) {
	case 0, 1, 2, 3:
		what = h.acquire(before)
	case 4, 5:
		what = h.release(false)
	case 6:
		what = h.release(true)
	case 7:
		what = h.renew()
	case 8:
		what = h.breakOne()
	case 9:
		what = h.requeue()
	case 10, 11:
		what = h.adopt()
	case 12:
		what = h.resize()
	}
	h.trace = append(h.trace, fmt.Sprintf("%12v %s", h.now.Sub(epoch), what))
	h.check(before)
}

// pause returns how far the clock moves: mostly a little, sometimes as long as a lease, and now and then back.
func (h *history) pause() time.Duration {
	switch h.draw(12) {
	case 0:
		return time.Duration(h.draw(12)) * time.Second
	case 1:
		return -time.Duration(h.draw(3)) * time.Second
	case 2, 3, 4:
		return time.Duration(h.draw(1000)) * time.Microsecond
	}
	return 0
}

func (h *history) request(key driver.Key) *driver.Request {
	r := &driver.Request{
		Key: key, ID: fmt.Sprint("id", len(h.ids)), Weight: 1, Tokens: 1 + h.draw(4),
		Lease: time.Duration(1+h.draw(10)) * time.Second, Try: h.draw(5) == 0,
	}
	if h.draw(4) == 0 {
		r.LockDelay = time.Duration(1+h.draw(5)) * time.Second
	}
	if h.draw(2) == 0 {
		r.Owner, r.Named = string(rune('A'+h.draw(3))), true
	}
	switch key.Kind {
	case driver.KindRWMutex:
		r.Mode = driver.Mode(h.draw(3))
	case driver.KindSemaphore:
		r.Mode, r.Limit, r.Weight = driver.Shared, h.limit+h.draw(12)/11, 1+h.draw(4)
		if h.draw(8) == 0 {
			r.Mode = driver.Exclusive
		}
	}
	h.ids = append(h.ids, ref{key, r.ID})
	return r
}

func (h *history) acquire(before map[driver.Key][]*record) string {
	if len(h.ids) > 0 && h.draw(8) == 0 {
		return h.repeat()
	}
	r := h.request(h.keys[h.draw(len(h.keys))])
	beside := h.beside(r)
	rec, err := h.s.enter(h.now, demand{Request: r, beside: beside})
	what := fmt.Sprintf("acquire %s %s mode %d named %v owner %q try %v %d of %d beside %q: %s",
		r.Kind, r.ID, r.Mode, r.Named, r.Owner, r.Try, r.Weight, r.Limit, beside, entered(rec, err))
	if base := h.s.records[ref{r.Key, beside}]; beside != "" && err == nil && (base == nil || base.phase != held) {
		h.fail("%s\nthe hold beside which it was asked for is over", what)
	}
	if err == nil && rec.phase == held && len(before[r.Key]) > 0 && rec.block.nonce == r.ID && !h.upgraded(rec) {
		h.fail("%s\nit overtook %d waiters", what, len(before[r.Key]))
	}
	if r.Try && err == nil && rec.phase == waiting {
		h.fail("%s\na Try waits", what)
	}
	return what
}

// beside returns the ID of a hold of r's lock beside which r is asked for; mostly it returns none. A named owner asks
// beside its own hold.
func (h *history) beside(r *driver.Request) string {
	if r.Kind != driver.KindRWMutex || h.draw(2) == 0 {
		return ""
	}
	at := h.pick()
	rec := h.s.records[at]
	if at.key != r.Key || rec == nil {
		return ""
	}
	r.Owner, r.Named = rec.req.Owner, rec.req.Named
	return at.id
}

// repeat sends a copy of an earlier request.
func (h *history) repeat() string {
	at := h.ids[h.draw(len(h.ids))]
	r := &driver.Request{Key: at.key, ID: at.id, Weight: 1, Lease: time.Second, Tokens: 1, Try: true}
	known := h.s.records[at]
	rec, err := h.s.acquire(h.now, r)
	what := fmt.Sprintf("repeat %s %s: %s", at.key.Kind, at.id, entered(rec, err))
	if known != nil && known.phase == held && (err != nil || rec.block != h.known[at]) {
		h.fail("%s\nit was granted %+v before", what, h.known[at])
	}
	if t := h.s.graves.tombs[at]; t != nil && !errors.Is(err, driver.ErrLost) {
		h.fail("%s\nit is over, want ErrLost", what)
	}
	return what
}

func (h *history) release(undo bool) string {
	if len(h.ids) == 0 {
		return "nothing to release"
	}
	at := h.pick()
	r := &driver.Release{Key: at.key, ID: at.id, Undo: undo, Horizon: 5 * time.Second}
	if !undo && h.draw(6) == 0 {
		r.Keep = time.Duration(1+h.draw(5)) * time.Second
	}
	rec := h.s.records[at]
	wasHeld := rec != nil && rec.phase == held
	err := h.s.release(h.now, r)
	what := fmt.Sprintf("release %s %s undo %v keep %v: %s", at.key.Kind, at.id, undo, r.Keep, name(err))
	if (err == nil) != (undo || wasHeld) {
		h.fail("%s\nheld before: %v", what, wasHeld)
	}
	return what
}

func (h *history) renew() string {
	if len(h.ids) == 0 {
		return "nothing to renew"
	}
	at := h.pick()
	rec := h.s.records[at]
	wasHeld := rec != nil && rec.phase == held
	err := h.s.renew(h.now, &driver.Renewal{Key: at.key, ID: at.id, Lease: time.Duration(h.draw(10)) * time.Second})
	what := fmt.Sprintf("renew %s %s: %s", at.key.Kind, at.id, name(err))
	if (err == nil) != wasHeld {
		h.fail("%s\nheld before: %v", what, wasHeld)
	}
	return what
}

func (h *history) breakOne() string {
	if len(h.ids) == 0 || h.draw(3) > 0 {
		return "nothing to break"
	}
	at := h.pick()
	rec := h.s.records[at]
	if rec == nil || rec.phase == waiting {
		return "nothing to break"
	}
	holds := slices.Clone(rec.group.holds)
	_, err := h.s.breakHolds(h.now, at.key, rec.block.end())
	what := fmt.Sprintf("break %s %s: %s", at.key.Kind, at.id, name(err))
	for _, hold := range holds {
		if rec := h.s.records[hold.ref]; rec != nil && (rec.phase != kept || rec.lost != driver.LostBroken) {
			h.fail("%s\n%s is still held", what, hold.ref.id)
		}
	}
	return what
}

func (h *history) requeue() string {
	if len(h.ids) == 0 {
		return "nothing to requeue"
	}
	at := h.pick()
	r := h.request(at.key)
	r.Try = false
	wasHeld := h.s.records[at] != nil
	rec, err := h.s.requeue(h.now, &driver.Release{Key: at.key, ID: at.id}, r)
	what := fmt.Sprintf("requeue %s %s as %s mode %d: %s", at.key.Kind, at.id, r.ID, r.Mode, entered(rec, err))
	if err != nil && wasHeld && h.s.records[at] == nil {
		h.fail("%s\n%s is gone", what, at.id)
	}
	return what
}

// pick returns a request, preferably one that waits or holds.
func (h *history) pick() ref {
	for range 8 {
		at := h.ids[h.draw(len(h.ids))]
		if h.s.records[at] != nil {
			return at
		}
	}
	return h.ids[h.draw(len(h.ids))]
}

// upgraded reports whether rec is a write within its owner's read.
func (h *history) upgraded(rec *record) bool {
	return slices.ContainsFunc(rec.group.holds, func(other *record) bool {
		return other != rec && other.req.Mode == driver.Upgradeable
	})
}

// end undoes all requests. Nothing but tombs may be left, and these must go with time.
func (h *history) end() {
	for _, at := range h.ids {
		_ = h.s.release(h.now, &driver.Release{Key: at.key, ID: at.id, Undo: true, Horizon: time.Second})
		h.trace = append(h.trace, "undo "+at.id)
		h.check(nil)
	}
	if len(h.s.locks)+len(h.s.records)+len(h.s.leases)+h.s.queued > 0 {
		h.fail("left after all was undone: %v", slices.Collect(maps.Keys(h.s.records)))
	}
	h.s.advance(h.now.Add(time.Hour))
	if n := len(h.s.graves.tombs) + len(h.s.graves.agenda); n > 0 {
		h.fail("%d tombs never go", n)
	}
}

func (h *history) run(steps int) {
	for range steps {
		h.step()
	}
	h.end()
}

func TestState_KeepsItsPromisesInRandomHistories(t *testing.T) {
	seeds := []uint64{*seedFlag}
	if *seedFlag == 0 {
		first := rand.Uint64()
		seeds = nil
		for i := range longrun.Of[uint64](100, 300) {
			seeds = append(seeds, first+i)
		}
	}
	for _, seed := range seeds {
		ok := t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			newHistory(t, rand.New(rand.NewPCG(seed, 0)).IntN).run(300)
		})
		if !ok {
			t.Fatalf("replay it with: go test ./memlock -run RandomHistories -seed %d", seed)
		}
	}
}

func FuzzState(f *testing.F) {
	f.Add([]byte("\x00\x01\x00\x00\x02\x03"))
	f.Fuzz(func(t *testing.T, script []byte) {
		if len(script) > 1<<12 {
			t.Skip("long enough is long enough")
		}
		at := 0
		h := newHistory(t, func(n int) int {
			if at >= len(script) {
				return 0
			}
			at++
			return int(script[at-1]) % n
		})
		for at < len(script) {
			h.step()
		}
		h.end()
	})
}
