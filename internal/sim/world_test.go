package sim

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"
)

// config says what a run is like.
type config struct {
	faults  bool          // whether the network and the nemesis do harm
	lossy   bool          // without that: whether single messages are lost and repeated nevertheless
	flaw    flaw          // what is deliberately wrong
	trouble time.Duration // how long the nemesis is at work
}

// names are the locks. Few, so that everybody meets.
var names = []string{"blue", "green", "red"}

const (
	processes = 4
	workers   = 3 // of each process

	shortLease   = time.Second
	defaultLease = 1500 * time.Millisecond
	longestLease = 3 * time.Second // also by Extend

	// The pauses between renewals divide no lease: with thirds, the core's limit for an answer would fall on the
	// instant of a later renewal, and which of the two comes first is nobody's to say.
	defaultRenewal = 487 * time.Millisecond
	longestRenewal = 971 * time.Millisecond
)

// world is one run.
type world struct {
	seed  uint64
	id    string // tells this run from every other of this test, also of the same seed
	conf  config
	start time.Time
	ctx   context.Context //nolint:containedctx // the run itself: ended when it is over

	engine    *engine
	truth     *truth
	weather   *weather
	beliefs   *beliefs
	order     *order
	resources map[string]*resource
	counts    tally

	mu         sync.Mutex // guards what is below
	events     []event
	violations []string
	red        map[checker]int
	stopping   bool
}

// event is one line of the log.
type event struct {
	at   time.Duration
	text string
}

// random returns the generator of one actor. No two actors share one, and none depends on what another has drawn.
func (w *world) random(actor string) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(actor))
	return rand.New(rand.NewPCG(w.seed*0x9e3779b97f4a7c15+1, h.Sum64()))
}

// now is the virtual time since the run began.
func (w *world) now() time.Duration { return time.Since(w.start) }

// note writes a line of the log: who, what, about which lock, and a number. The words are joined and not formatted,
// because there are many of them.
func (w *world) note(words ...string) {
	e := event{at: w.now(), text: strings.Join(words, " ")}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, e)
}

// violate records that a property does not hold.
func (w *world) violate(c checker, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	w.note("VIOLATION of", string(c)+":", text)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.red[c]++
	w.violations = append(w.violations, fmt.Sprintf("%v %s: %s", time.Since(w.start), c, text))
}

// windingUp reports whether the run is being wound up.
func (w *world) windingUp() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stopping
}

// windUp tells the workers to finish.
func (w *world) windUp() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopping = true
}

// report closes the books. Lines of the same instant were written in any order, so they are sorted by text.
func (w *world) report() *report {
	w.mu.Lock()
	defer w.mu.Unlock()
	slices.SortFunc(w.events, func(a, b event) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.text, b.text))
	})
	r := &report{seed: w.seed, violations: w.violations, red: w.red, counts: w.counts.by, lasted: w.now()}
	h := fnv.New64a()
	for _, e := range w.events {
		line := fmt.Sprintf("%14d %s", e.at, e.text)
		r.log = append(r.log, line)
		h.Write([]byte(line))
	}
	r.hash = h.Sum64()
	return r
}
