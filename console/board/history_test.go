package board

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
)

var seed = flag.Uint64("board.seed", 0, "seed of the random histories; 0 draws one")

// randomBoard is what a look may find.
func randomBoard(r *rand.Rand, now time.Time) *Board {
	b := &Board{Tried: now, Taken: now, Locks: []Lock{}, Edges: []Edge{}, Cycles: [][]string{}, Events: []Event{}}
	if r.IntN(5) == 0 {
		b.Error = "away"
	}
	for i := range 8 {
		if r.IntN(2) == 0 {
			continue
		}
		l := mutexHeld("lock"+strconv.Itoa(i), Holder{
			Client: "c", Owner: strconv.Itoa(r.IntN(3)), Token: uint64(r.IntN(3)),
			Until: now.Add(time.Duration(r.IntN(3)-1) * time.Second), Cooldown: r.IntN(9) == 0,
		})
		for range r.IntN(3) {
			l.Waiters = append(l.Waiters, Waiter{Client: "c", Owner: strconv.Itoa(r.IntN(3))})
		}
		b.Locks = append(b.Locks, l)
	}
	b.cut(5)
	g := WaitsFor(b.Locks)
	b.Edges, b.Cycles = g.Edges, g.Cycles
	return b
}

// A reader may be as slow as it likes: what it has is always the board.
func TestUpdates_BringEveryReaderToTheSameBoard(t *testing.T) {
	if *seed == 0 {
		*seed = rand.Uint64()
	}
	t.Logf("-board.seed=%d", *seed)
	r := rand.New(rand.NewPCG(*seed, 0))
	now := time.Date(2026, 11, 25, 0, 0, 0, 0, time.UTC)
	for range 20 {
		h := &history{endings: map[endingHold]*ending{}}
		has, seen := [3]*Board{}, [3]uint64{}
		for range 40 {
			now = now.Add(time.Second)
			switch r.IntN(6) {
			case 0:
				h.tell(Event{Event: Lost, Kind: driver.KindMutex, Name: "x"})
			default:
				h.look(randomBoard(r, now), now)
			}
			reader := r.IntN(len(has))
			if h.board == nil {
				continue
			}
			u := h.update(seen[reader])
			if seen[reader] = u.Revision; u.Board != nil {
				has[reader] = u.Board
			} else {
				has[reader] = u.Change.Apply(has[reader])
			}
			if inJSON(t, has[reader]) != inJSON(t, h.board) {
				t.Fatalf("got  %+v\nwant %+v", has[reader], h.board)
			}
		}
	}
}

// inJSON is what a browser gets of a board.
func inJSON(t *testing.T, b *Board) string {
	t.Helper()
	text, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestHistory_ReaderThatIsTooFarBehind_GetsTheWholeBoard(t *testing.T) {
	h := &history{endings: map[endingHold]*ending{}}
	now := time.Date(2026, 11, 25, 0, 0, 0, 0, time.UTC)
	look := func(names ...string) {
		b := &Board{Tried: now, Taken: now, Locks: []Lock{}}
		for _, n := range names {
			b.Locks = append(b.Locks, mutexHeld(n))
		}
		h.look(b, now)
	}
	var many []string
	for i := range keptGone {
		many = append(many, fmt.Sprintf("%06d", i))
	}
	look("a")
	for range 3 {
		look(many...)
		look()
	}
	if u := h.update(1); u.Board == nil {
		t.Errorf("a change of %d locks", len(u.Change.Gone))
	}
	look("b")
	look()
	if u := h.update(h.revision - 2); u.Change == nil || len(u.Change.Gone) != 1 {
		t.Errorf("%+v", u)
	}
	if len(h.gone) > 2*keptGone || len(h.events) > 2*keptEvents {
		t.Errorf("%d locks and %d events are kept", len(h.gone), len(h.events))
	}
}

func TestHistory_LocksBeyondAFullBoard_AreNotReleased(t *testing.T) {
	h := &history{endings: map[endingHold]*ending{}}
	holder := Holder{Client: "c", Token: 1}
	look := func(truncated bool, names ...string) string {
		b := &Board{Truncated: truncated}
		for _, n := range names {
			b.Locks = append(b.Locks, mutexHeld(n, holder))
		}
		before := h.revision
		h.look(b, time.Now())
		return words(h.latest(before))
	}
	look(true, "b", "c")
	if got := look(true, "a", "b"); got != "held a" {
		t.Error(got)
	}
	if got := look(false, "b", "c"); got != "released a" {
		t.Error(got)
	}
	if u := h.update(2); !slices.Equal(u.Change.Gone, []string{"mutex/a"}) {
		t.Errorf("%+v", u.Change)
	}
}

// What an engine does not tell stays unknown while nobody holds anything.
func TestHistory_RemembersWhatTheEngineDoesNotTell(t *testing.T) {
	h := &history{endings: map[endingHold]*ending{}}
	look := func(locks ...Lock) Knows {
		b := &Board{Locks: locks, Counts: Counts{Held: len(locks)}, Knows: knowledge(driver.Traits{})}
		b.Knows.seen(locks)
		h.look(b, time.Now())
		return h.board.Knows
	}
	if k := look(); !k.Since.OK || !k.Token.OK {
		t.Errorf("%+v", k)
	}
	before := h.revision
	for range 2 {
		if k := look(mutexHeld("a", Holder{Token: 1})); k.Since.OK || !k.Token.OK {
			t.Errorf("%+v", k)
		}
		if k := look(); k.Since.OK || !k.Token.OK {
			t.Errorf("nobody holds anything: %+v", k)
		}
	}
	if c := h.update(before).Change; c.Knows == nil || c.Knows.Since.OK {
		t.Errorf("%+v", c)
	}
}

// at is a history whose looks find what they are given.
func at(t *testing.T) (h *history, look func(locks ...Lock)) {
	t.Helper()
	h = &history{endings: map[endingHold]*ending{}}
	return h, func(locks ...Lock) { h.look(&Board{Locks: locks}, time.Now()) }
}

func TestHistory_ALockThatHasComeBack_HasNotGone(t *testing.T) {
	h, look := at(t)
	look(mutexHeld("a"), mutexHeld("b"))
	before := h.revision
	look()
	look(mutexHeld("b"))
	c := h.update(before).Change
	if !slices.Equal(c.Gone, []string{"mutex/a"}) || len(c.Changed) != 1 || c.Changed[0].Name != "b" {
		t.Errorf("%+v", c)
	}
}

// Each step of the end of a lease may be too small to be told from the engine's rounding.
func TestHistory_NoticesManySmallSteps(t *testing.T) {
	h, look := at(t)
	until := time.Date(2026, 11, 25, 0, 0, 0, 0, time.UTC)
	look(mutexHeld("a", Holder{Token: 1, Until: until}))
	before := h.revision
	for i := range 5 {
		look(mutexHeld("a", Holder{Token: 1, Until: until.Add(time.Duration(i+1) * jitter / 2)}))
	}
	if c := h.update(before).Change; len(c.Changed) != 1 || len(c.Events) != 0 {
		t.Errorf("%+v", c)
	}
}
