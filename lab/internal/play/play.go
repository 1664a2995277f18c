// Package play directs an experiment: it starts what acts in it, makes it stand still, go on and die at the scripted
// steps, and writes the story down. Nothing happens by luck: an act goes on only when the step before is over.
package play

import (
	"context"
	"errors"
	"maps"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servers"
	"github.com/interlock-go/interlock/lab/internal/story"
)

// Play is one experiment under way. What goes wrong with the machinery ends it, as it ends a test; what was to be shown
// and was not is a step of the story, and an error.
type Play struct {
	testing.TB
	ctx   context.Context //nolint:containedctx // stands for the test's, which a program has not
	story *story.Story
	began time.Time

	lookers map[string]*interlock.Client // the lab's own, by URL

	mu     sync.Mutex // guards what follows: an actor that stands still wrote its steps in a goroutine of its own
	act    *story.Act
	states map[string]story.State
	keys   []func() string // who holds the lock, as each of the servers says
	clash  bool            // was told of already
	over   bool
	tokens map[uint64]int
	code   map[string][]string // where each client is in its exhibit

	left atomic.Int64 // of the lease, as whoever looked last has seen; see story.Step.Left
	tap  tap
}

// New begins an experiment, which ends with ctx.
func New(ctx context.Context, t testing.TB, id string, title, about story.Text) *Play {
	return &Play{
		TB: t, ctx: ctx, story: &story.Story{ID: id, Title: title, About: about}, began: time.Now(),
		tokens: map[uint64]int{}, lookers: map[string]*interlock.Client{},
	}
}

// Context ends when the experiment is to end.
func (p *Play) Context() context.Context { return p.ctx }

// Story returns what has happened, and is called when all has: a process that renews still is not written down.
func (p *Play) Story() *story.Story {
	p.tap.turn(nil)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
	return p.story
}

// now returns the act that is played.
func (p *Play) now() *story.Act {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.act
}

// Act begins an act of the exhibit.
func (p *Play) Act(en, zh string) { p.begin(&story.Act{Title: story.Text{EN: en, ZH: zh}}) }

// Sound begins an act of the sound lock.
func (p *Play) Sound(en, zh string) {
	p.begin(&story.Act{Title: story.Text{EN: en, ZH: zh}, Sound: true})
}

// Fenced begins an act of the sound lock where two believe to hold it, as can happen, and the
// resource refuses one of them.
func (p *Play) Fenced(en, zh string) {
	p.begin(&story.Act{Title: story.Text{EN: en, ZH: zh}, Sound: true, Fenced: true})
}

func (p *Play) begin(a *story.Act) {
	p.tap.turn(a)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.act, p.keys, p.states, p.clash, p.code = a, nil, map[string]story.State{}, false, map[string][]string{}
	p.story.Acts = append(p.story.Acts, a)
}

// Answers names the acts of the exhibit, by number, whose events this act of the sound lock repeats. An act that does
// not say stands beside the one with the same title or the same place.
func (p *Play) Answers(acts ...int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.act.Answers = acts
}

// Watch has the picture show who holds the lock as a server says. It is asked after each step.
func (p *Play) Watch(server string, holder func() string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.act.Keys = append(p.act.Keys, server)
	p.keys = append(p.keys, holder)
}

// Say tells what the audience should know.
func (p *Play) Say(en, zh string, args ...any) { p.step("", story.Says, story.T(en, zh, args...)) }

// Fate tells what befalls the actors: a crash, a cut cable, time that passes.
func (p *Play) Fate(en, zh string, args ...any) { p.step("", story.Fate, story.T(en, zh, args...)) }

// Show tells what was to be shown, if ok; otherwise the experiment has failed.
func (p *Play) Show(ok bool, en, zh string, args ...any) {
	p.Helper()
	kind := story.Shown
	if !ok {
		kind = story.Missing
		p.Errorf("%s: not as expected: %s", p.story.ID, story.T(en, zh, args...).In(story.EN))
	}
	p.step("", kind, story.T(en, zh, args...))
}

// ShowClash shows that two believed to hold the lock in this act.
func (p *Play) ShowClash(en, zh string, args ...any) {
	p.Helper()
	p.Show(p.act.Clashed(), en, zh, args...)
}

// ShowAlone shows that no two believed so at any step.
func (p *Play) ShowAlone(en, zh string, args ...any) {
	p.Helper()
	p.Show(!p.act.Clashed(), en, zh, args...)
}

// Clashed reports whether two believed to hold the lock in this act.
func (p *Play) Clashed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.act.Clashed()
}

// cast makes name one whose belief the picture shows.
func (p *Play) cast(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !slices.Contains(p.act.Cast, name) {
		p.act.Cast = append(p.act.Cast, name)
	}
}

// set changes an actor's state; the next step shows it.
func (p *Play) set(name string, s story.State) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.states[name] = s
}

// Crowd makes clients of one sort members of the cast, which act together.
func (p *Play) Crowd(names []string) {
	for _, name := range names {
		p.cast(name)
	}
}

// Mark changes the state of members of a crowd; the next step shows it.
func (p *Play) Mark(s story.State, names ...string) {
	for _, name := range names {
		p.set(name, s)
	}
}

// state returns an actor's state.
func (p *Play) state(name string) story.State {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.states[name]
}

// step writes one step down, and another one when two believe to hold the lock since then.
func (p *Play) step(who string, kind story.Kind, text story.Text) { p.record(who, kind, text, nil) }

// said writes down what a client asked a server, and the answer.
func (p *Play) said(who string, text story.Text, m *story.Message) {
	p.record(who, story.Asks, text, m)
}

func (p *Play) record(who string, kind story.Kind, text story.Text, m *story.Message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.write(who, kind, text, m)
	believers := p.act.Steps[len(p.act.Steps)-1].Believers()
	clash := len(believers) > 1
	if clash && !p.clash {
		p.write("", story.Clash, story.Text{
			EN: strings.Join(believers, ", ") + " believe at the same time that they hold it.",
			ZH: strings.Join(believers, "、") + " 同时认为自己持有锁。",
		}, nil)
		if p.act.Sound && !p.act.Fenced {
			p.Errorf("%s: two believe to hold the sound lock: %s", p.story.ID, strings.Join(believers, ", "))
		}
	}
	p.clash = clash
}

// write appends a step with the state of things after it.
func (p *Play) write(who string, kind story.Kind, text story.Text, m *story.Message) {
	s := story.Step{
		At: time.Since(p.began), Who: who, Kind: kind, Text: text, States: map[string]story.State{},
		Message: m, Code: maps.Clone(p.code),
	}
	for name, state := range p.states {
		if state != story.Idle {
			s.States[name] = state
		}
	}
	for _, holder := range p.keys {
		p.left.Store(0)
		who := holder() // leaves behind how much of the lease is left, if it can tell
		s.Held, s.Left = append(s.Held, who), append(s.Left, p.left.Load())
	}
	p.act.Steps = append(p.act.Steps, s)
}

// beat writes a renewal down, in the act of the client that renews: it may renew for a moment longer than that lasts.
func (p *Play) beat(in *story.Act, who string, left time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.over {
		in.Beats = append(in.Beats, story.Beat{At: time.Since(p.began), Who: who, Left: left.Milliseconds()})
	}
}

// until asks whether something is so, which no server tells by itself, and returns false if it is not in time.
func (p *Play) until(is func() bool) bool {
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if is() {
			return true
		}
	}
	return false
}

// Token returns a token as the story tells it: in golden files by its rank of appearance.
func (p *Play) Token(token uint64) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	n, known := p.tokens[token]
	if !known {
		n = len(p.tokens) + 1
		p.tokens[token] = n
	}
	return story.Volatile(token, "token "+string(rune('0'+n)))
}

// glance bounds a look at who holds the lock: a server that is away shows nobody.
const glance = time.Second

// looker returns the lab's own client of an engine, with which it looks at locks.
func (p *Play) looker(url string) *interlock.Client {
	p.Helper()
	if p.lookers[url] == nil {
		locks, err := interlock.Open(p.Context(), url, &interlock.Options{ClientName: "lab", CloseTimeout: glance})
		if err != nil {
			p.Fatal(err)
		}
		p.Cleanup(func() { _ = locks.Close() }) // it holds nothing
		p.lookers[url] = locks
	}
	return p.lookers[url]
}

// look returns what the engine says about a lock.
func (p *Play) look(locks *interlock.Client, name string) (driver.LockInfo, bool) {
	ctx, cancel := context.WithTimeout(p.Context(), glance)
	defer cancel()
	for info, err := range locks.List(ctx, name) {
		if err == nil && info.Name == name {
			return info, true
		}
	}
	return driver.LockInfo{}, false
}

// WatchNode has the picture show who holds an interlock lock as one Redis says, as long as that runs.
func (p *Play) WatchNode(label string, node *Redis, name string) {
	p.Helper()
	locks := p.looker(node.URL())
	p.Watch(label, func() string {
		if !node.Alive() {
			return ""
		}
		return p.holder(locks, name)
	})
}

// WatchLock has the picture show who holds an interlock lock, as its engine says.
func (p *Play) WatchLock(server, url, name string) {
	p.Helper()
	locks := p.looker(url)
	p.Watch(server, func() string { return p.holder(locks, name) })
}

// holder returns who holds a lock as its engine says, or "".
func (p *Play) holder(locks *interlock.Client, name string) string {
	info, ok := p.look(locks, name)
	if !ok || len(info.Holders) == 0 {
		return ""
	}
	if end := info.Holders[0].Until; !end.IsZero() {
		p.left.Store(max(time.Until(end).Milliseconds(), 1)) // the engine's clock is this machine's
	}
	return info.Holders[0].Client
}

// AwaitNoWaiters returns when nobody waits any more for the lock, which somebody holds.
func (p *Play) AwaitNoWaiters(url, name string) {
	p.Helper()
	locks := p.looker(url)
	if !p.until(func() bool {
		info, ok := p.look(locks, name)
		return ok && len(info.Waiters) == 0
	}) {
		p.Fatal("somebody waits still")
	}
}

// awaitQueued returns when the engine knows that a client wants the lock, or has it: who asks next comes after it.
func (p *Play) awaitQueued(url, name, client string) {
	p.Helper()
	locks := p.looker(url)
	if !p.until(func() bool {
		info, _ := p.look(locks, name)
		return slices.ContainsFunc(info.Waiters, func(w driver.Waiter) bool { return w.Client == client }) ||
			slices.ContainsFunc(info.Holders, func(h driver.Holder) bool { return h.Client == client })
	}) {
		p.Fatalf("%s never came into the queue", client)
	}
}

// exhibits is in the name of every function of an exhibit.
const exhibits = "/lab/exhibit/"

// exhibitLines returns the lines of the exhibit that are about to send a command, each as directory/file:line: first
// the one that sends it, then its callers. There are none when the command is the experiment's own. The exhibits need
// not know that they are shown: the stack tells.
func exhibitLines() []string {
	var callers [16]uintptr
	frames := runtime.CallersFrames(callers[:runtime.Callers(2, callers[:])])
	var all []string
	for more := true; more; {
		var f runtime.Frame
		f, more = frames.Next()
		if strings.Contains(f.Function, exhibits) {
			dir, file := filepath.Split(f.File)
			all = append(all, filepath.Base(dir)+"/"+file+":"+strconv.Itoa(f.Line))
		}
	}
	return all
}

// reached writes down where a client is in its exhibit; no lines are nowhere.
func (p *Play) reached(who string, lines []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(lines) == 0 {
		delete(p.code, who)
		return
	}
	p.code[who] = lines
}

// Alone runs f outside of a test, ends what it started, and returns what it failed with; [servers.ErrMissing] if a
// server is not installed.
func Alone(f func(t testing.TB)) error {
	stage, err := servers.NewStage()
	if err != nil {
		return err
	}
	return errors.Join(stage.Play(f), stage.Close())
}
