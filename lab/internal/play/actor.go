package play

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/interlock-go/interlock/drivertest/servers"
	"github.com/interlock-go/interlock/lab/exhibit"
	"github.com/interlock-go/interlock/lab/internal/story"
)

// errDead is what a client gets that was killed. It is a goroutine here, which lives a little longer; it cannot reach its
// server any more, and nobody looks at what it returns.
var errDead = errors.New("this client was killed")

// patience bounds every wait of a director: what should have happened by then will not.
const patience = 30 * time.Second

// Actor is a client that runs an exhibit. The lab stands between it and its servers.
type Actor struct {
	p    *Play
	name string

	stop    func(args []string) bool // where it is to stand still; nil if nowhere
	stopped chan struct{}            // it stands still
	resume  chan bool                // false: it is dead
	dead    bool
	quiet   bool // nothing is written down
	links   []*Link
}

// Actor returns a new client.
func (p *Play) Actor(name string) *Actor {
	p.cast(name)
	return &Actor{p: p, name: name, stopped: make(chan struct{}), resume: make(chan bool)}
}

// Name returns the client's name.
func (a *Actor) Name() string { return a.name }

// Link is an actor's connection to one server.
type Link struct {
	actor *Actor
	conn  *servers.RedisConn
	addr  string
	label string // of the server, where there are several
}

var _ exhibit.Conn = (*Link)(nil)

// Dial connects the client to a Redis. The label tells which, where there are several.
func (a *Actor) Dial(addr, label string) *Link {
	a.p.Helper()
	conn, err := servers.DialRedis(a.p.Context(), addr, nil)
	if err != nil {
		a.p.Fatalf("%s cannot connect to %s: %v", a.name, addr, err)
	}
	l := &Link{actor: a, conn: conn, addr: addr, label: label}
	a.links = append(a.links, l)
	a.p.Cleanup(func() { _ = conn.Close() })
	return l
}

// Do sends one command and writes it down, with its answer. This is where a client stands still or dies.
func (l *Link) Do(ctx context.Context, args ...string) (any, error) {
	a := l.actor
	if err := a.gate(args); err != nil {
		return nil, err
	}
	reply, err := l.conn.Do(ctx, args...)
	if a.quiet {
		return reply, err
	}
	a.p.step(a.name, story.Asks, l.said(args, reply, err))
	return reply, err
}

// gate is passed before each command. The client stands still here if it is to, and does not pass when it is dead.
func (a *Actor) gate(args []string) error {
	if a.stop != nil && a.stop(args) {
		a.stop = nil
		a.stopped <- struct{}{}
		a.dead = !<-a.resume
	}
	if a.dead {
		return errDead
	}
	return nil
}

// said is a command and its answer. That none came is told in words: what the system calls it differs.
func (l *Link) said(args []string, reply any, err error) story.Text {
	text := Command(args) + "  →  "
	if l.label != "" {
		text = l.label + ": " + text
	}
	if refused := servers.RedisError(""); err != nil && !errors.As(err, &refused) {
		return story.Join(story.Same(text), story.T("no answer", "没有回答"))
	}
	return story.Same(text + Answer(reply, err))
}

// Command is a command as a story tells it. Scripts are cut: the exhibit's own text shows them.
func Command(args []string) string {
	words := slices.Clone(args)
	for i, word := range words {
		switch {
		case i == 1 && strings.EqualFold(words[0], "EVAL"):
			words[i] = "<script>"
		case word == "" || strings.ContainsAny(word, " \n"):
			words[i] = fmt.Sprintf("%q", word)
		}
	}
	return strings.Join(words, " ")
}

// Answer is a reply as a story tells it.
func Answer(reply any, err error) string {
	if err != nil {
		return err.Error()
	}
	switch reply := reply.(type) {
	case nil:
		return "(nil)"
	case string:
		return reply
	case []any:
		var all []string
		for _, r := range reply {
			all = append(all, Answer(r, nil))
		}
		return "[" + strings.Join(all, ", ") + "]"
	default:
		return fmt.Sprint(reply)
	}
}

// Says tells what the client does or thinks.
func (a *Actor) Says(en, zh string, args ...any) {
	a.p.step(a.name, story.Says, story.T(en, zh, args...))
}

// Believes tells that the client believes to hold the lock, or does not any more, and why.
func (a *Actor) Believes(holds bool, en, zh string, args ...any) {
	a.p.Helper()
	state := story.Idle
	if holds {
		state = story.Holds
	}
	a.p.set(a.name, state)
	a.Says(en, zh, args...)
}

// Got takes what an exhibit's acquisition returned, tells it, and fails the experiment if that is not what was expected.
func (a *Actor) Got(want, got bool, err error) {
	a.p.Helper()
	if err != nil || got != want {
		a.p.Fatalf("%s: the exhibit returned %v, %v instead of %v", a.name, got, err, want)
	}
	if got {
		a.Believes(true, "has got it, and begins to work.", "拿到了锁，开始干活。")
		return
	}
	a.Says("is refused.", "被拒绝。")
}

// Freed takes what an exhibit's release returned, and tells it.
func (a *Actor) Freed(err error) {
	a.p.Helper()
	if err != nil {
		a.p.Fatalf("%s: the exhibit's release: %v", a.name, err)
	}
	a.Believes(false, "believes that it has released its own lock.", "以为自己释放的是自己的锁。")
}

// Pause is a call of an exhibit that stands still before a command.
type Pause struct {
	a    *Actor
	done chan struct{}
}

// Until runs f until it is about to send a command that begins with the given word, and returns then. f runs on after
// Resume. If it ends before, the experiment has failed.
func (a *Actor) Until(command string, f func()) *Pause {
	a.p.Helper()
	return a.UntilNth(command, 1, f)
}

// UntilNth is Until for the n-th of such commands.
func (a *Actor) UntilNth(command string, n int, f func()) *Pause {
	a.p.Helper()
	a.stop = func(args []string) bool {
		if strings.EqualFold(args[0], command) {
			n--
		}
		return n == 0
	}
	pause := &Pause{a: a, done: make(chan struct{})}
	go func() { // ends by Resume or Kill
		defer close(pause.done)
		f()
	}()
	select {
	case <-a.stopped:
	case <-pause.done:
		a.p.Fatalf("%s never sent %s", a.name, command)
	case <-time.After(patience):
		a.p.Fatalf("%s neither sent %s nor ended", a.name, command)
	}
	if a.p.state(a.name) == story.Holds {
		a.p.set(a.name, story.Still)
	}
	return pause
}

// Resume lets the call go on, and returns when it has ended.
func (c *Pause) Resume() {
	c.a.p.Helper()
	if c.a.p.state(c.a.name) == story.Still {
		c.a.p.set(c.a.name, story.Holds)
	}
	c.end(true)
}

// Kill ends the client: as after kill -9, its connections break and it sends nothing any more.
func (c *Pause) Kill() {
	c.a.p.Helper()
	for _, l := range c.a.links {
		_ = l.conn.Close()
	}
	c.a.p.set(c.a.name, story.Dead)
	c.end(false)
}

func (c *Pause) end(alive bool) {
	c.a.p.Helper()
	c.a.resume <- alive
	select {
	case <-c.done:
	case <-time.After(patience):
		c.a.p.Fatalf("%s does not end", c.a.name)
	}
}

// Kill ends a client that is in no call.
func (a *Actor) Kill() {
	for _, l := range a.links {
		_ = l.conn.Close()
	}
	a.dead = true
	a.p.set(a.name, story.Dead)
}

// Counted is a link that writes nothing down and counts.
type Counted struct {
	link  *Link
	limit int
	sent  int
	full  func()
}

// Quietly returns a new connection of the same client to the same server whose commands are counted, not told. After the limit it calls full.
func (l *Link) Quietly(limit int, full func()) *Counted {
	l.actor.p.Helper()
	fresh := l.actor.p.Actor(l.actor.name).Dial(l.addr, l.label)
	return &Counted{link: fresh, limit: limit, full: full}
}

// Sent returns how many commands were sent.
func (c *Counted) Sent() int { return c.sent }

// Do sends one command.
func (c *Counted) Do(ctx context.Context, args ...string) (any, error) {
	reply, err := c.link.conn.Do(ctx, args...)
	if c.sent++; c.sent == c.limit {
		c.full()
	}
	return reply, err
}

// Short is a duration as a story tells it.
func Short(d time.Duration) string { return d.Round(time.Millisecond).String() }

// Must sends a command of the client's own work.
func (l *Link) Must(args ...string) any {
	l.actor.p.Helper()
	reply, err := l.Do(l.actor.p.Context(), args...)
	if err != nil {
		l.actor.p.Fatalf("%s: %s: %v", l.actor.name, Command(args), err)
	}
	return reply
}

// Quietly calls f, whose commands the story does not tell.
func (a *Actor) Quietly(f func() error) error {
	a.quiet = true
	defer func() { a.quiet = false }()
	return f()
}

// StandStill makes the client stand still while it is in no call.
func (a *Actor) StandStill() {
	a.p.set(a.name, story.Still)
	a.p.step(a.name, story.Fate, story.T("stands still, as in a long garbage collection.", "停住了，就像一次很长的 GC。"))
}

// GoOn ends it.
func (a *Actor) GoOn() {
	a.p.set(a.name, story.Holds)
	a.p.step(a.name, story.Fate, story.T("goes on with its work, as a holder.", "继续干活，还以为自己持有锁。"))
}
