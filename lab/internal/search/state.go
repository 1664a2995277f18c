package search

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/lab/internal/story"
)

// Action is what happens in a move.
type Action string

// The actions. All but the first are faults.
const (
	Sends  Action = "sends"  // a client sends its next command
	Passes Action = "passes" // time passes, for longer than a lease
	Dies   Action = "dies"   // a client is killed
	Jumps  Action = "jumps"  // a client's clock jumps ahead
	Loses  Action = "loses"  // a client will lose the next answer
)

// Move is one step of a schedule.
type Move struct {
	Action Action
	Who    int // the client, counted from 0
}

// The times of the model, in ms.
const (
	begin  = 1_000_000    // what the clocks say first
	passes = 20_000       // the time that passes at once: all leases are over then
	ages   = 1_000_000    // the time after which a lock that is closed will never open
	jump   = 60_000       // how far a clock jumps
	leased = lease * 1000 // how long a client may be inside
)

// client is one client in a state.
type client struct {
	begun, dead bool
	losing      bool // its next answer will be lost
	lost        bool // an answer was
	start       int64
	jumped      int64
	past        []answer
	sent        []string // its last command
	session     session
	since       int64 // when it got in, if it is inside
	view        view
}

// over reports whether the client does nothing any more.
func (c *client) over() bool { return c.dead || c.begun && c.view.next == nil }

// state is one situation.
type state struct {
	server  server
	now     int64 // in ms since the beginning
	faults  int   // so far
	bound   int   // the number of the client that moves next, from 1; 0 if it may be any
	clients []client
}

// nameOf is a client's name.
func nameOf(who int) string { return string(rune('A' + who)) }

// clock is what a client's clock says. No two clocks agree to the millisecond.
func (s *state) clock(who int) int64 { return begin + s.now + int64(who) + s.clients[who].jumped }

// clone returns a state that can be changed.
func (s *state) clone() *state {
	to := *s
	to.clients = slices.Clone(s.clients)
	return &to
}

// moves returns what can happen next: what clients do comes first, so that of two schedules of the same length the one
// with fewer faults is found. A clock jumps, and an answer is about to be lost, just before the client's next command:
// earlier would make no difference.
func (s *state) moves(e *Exhibit, faults int) []Move {
	if s.bound > 0 {
		return []Move{{Sends, s.bound - 1}}
	}
	var all, harm []Move
	for i := range s.clients {
		c := &s.clients[i]
		if c.over() || i > 0 && !s.clients[i-1].begun {
			continue
		}
		all = append(all, Move{Sends, i})
		if c.begun {
			harm = append(harm, Move{Dies, i})
		}
		if e.Clocks && c.jumped == 0 {
			harm = append(harm, Move{Jumps, i})
		}
		if !c.losing && !c.view.inside { // what it writes inside decides nothing
			harm = append(harm, Move{Loses, i})
		}
	}
	if s.faults >= faults {
		return all
	}
	if s.clients[0].begun && (s.server.leased() || e.Clocks) {
		all = append(all, Move{Action: Passes})
	}
	return append(all, harm...)
}

// after returns the state after a move.
func (s *state) after(ctx context.Context, e *Exhibit, m Move) (*state, error) {
	to := s.clone()
	if to.bound = 0; m.Action != Sends {
		to.faults++
	}
	c := &to.clients[m.Who]
	switch m.Action {
	case Sends:
		return to, to.send(ctx, e, m.Who)
	case Passes:
		to.pass()
	case Dies:
		c.dead, c.session = true, session{}
	case Jumps:
		c.jumped, to.bound = jump, m.Who+1
	case Loses:
		c.losing, to.bound = true, m.Who+1
	}
	return to, nil
}

// pass lets time pass for everybody.
func (s *state) pass() {
	s.now += passes
	if s.server.expire(s.now) {
		s.touch()
	}
}

// send has a client send its next command, and do what it does with the answer.
func (s *state) send(ctx context.Context, e *Exhibit, who int) error {
	c := &s.clients[who]
	if !c.begun {
		c.begun, c.start = true, s.clock(who)
		s.look(ctx, e, who)
	}
	if c.view.next == nil { // a program without commands
		return nil
	}
	c.sent = c.view.next
	reply, err := s.execute(who, c.sent)
	if err != nil {
		return err
	}
	told := answer{reply: reply, clock: s.clock(who)}
	if c.losing {
		told.reply, told.err, c.losing, c.lost = nil, errLost, false, true
		c.session = session{} // the connection breaks, and its transaction with it
	}
	c.past = append(slices.Clip(c.past), told)
	was := c.view.inside
	if s.look(ctx, e, who); c.view.inside && !was {
		c.since = s.now
	}
	return nil
}

// look learns what a client is about to do.
func (s *state) look(ctx context.Context, e *Exhibit, who int) {
	c := &s.clients[who]
	c.view = look(ctx, e.Program, &paper{name: nameOf(who), start: c.start, past: c.past})
}

// key names the state: states with the same key have the same future. What a client was told counts as long as its
// program runs, and what its clock said when the program has looked.
func (s *state) key() string {
	var b strings.Builder
	fmt.Fprint(&b, s.server, s.now, s.faults, s.bound)
	for i := range s.clients {
		c := &s.clients[i]
		if fmt.Fprint(&b, "|", c.begun, c.lost); c.over() {
			fmt.Fprint(&b, "over", c.dead)
			continue
		}
		fmt.Fprint(&b, c.losing, c.jumped, c.session.dirty)
		if c.view.inside {
			fmt.Fprint(&b, " since", c.since)
		}
		for n, a := range c.past {
			if fmt.Fprint(&b, ";", a.reply, a.err); c.view.looked&(2<<n) != 0 {
				fmt.Fprint(&b, " ", a.clock)
			}
		}
		if c.view.looked&1 != 0 {
			fmt.Fprint(&b, " ", c.start)
		}
	}
	return b.String()
}

// Kind is a way to fail.
type Kind string

// The kinds.
const (
	Never   Kind = "never"   // the lock stays closed, however long one waits, and nobody has it
	Robbed  Kind = "robbed"  // two are inside, and neither has overrun its lease
	Overrun Kind = "overrun" // two are inside, one of them for longer than its lease
	Left    Kind = "left"    // all have released, nothing was lost, and the lock is closed
)

// Kinds are all of them, in the order in which they are told.
var Kinds = []Kind{Never, Robbed, Overrun, Left}

var titles = map[Kind]story.Text{
	Never:   story.T("a lock that never opens again", "再也打不开的锁"),
	Robbed:  story.T("two inside, and neither has overrun its lease", "两个人同时在里面，谁都没有超过租约"),
	Overrun: story.T("two inside, one of them after the end of its lease", "两个人同时在里面，其中一个的租约已经到期"),
	Left:    story.T("all have released, and the lock stays closed", "所有人都已释放，锁却还关着"),
}

// judge returns how a state fails.
func (s *state) judge(ctx context.Context, e *Exhibit) ([]Kind, error) {
	if s.bound > 0 {
		return nil, nil
	}
	inside, late := 0, 0
	quiet, whole := s.clients[0].begun, true // nobody does anything; nobody was killed, and no answer lost
	for i := range s.clients {
		c := &s.clients[i]
		quiet = quiet && (!c.begun || c.over())
		whole = whole && !c.dead && !c.lost
		if c.dead || !c.view.inside || c.view.until != 0 && s.clock(i) >= c.view.until {
			continue
		}
		inside++
		if s.now-c.since >= leased {
			late++
		}
	}
	switch {
	case inside-late > 1:
		return []Kind{Robbed}, nil
	case inside > 1:
		return []Kind{Overrun}, nil
	case !quiet:
		return nil, nil
	}
	return s.closed(ctx, e, whole)
}

// closed returns how a lock that nobody has is closed all the same.
func (s *state) closed(ctx context.Context, e *Exhibit, whole bool) ([]Kind, error) {
	var found []Kind
	refused, err := s.refuses(ctx, e, 0)
	if err != nil || !refused {
		return nil, err
	}
	if whole {
		found = append(found, Left)
	}
	refused, err = s.refuses(ctx, e, ages)
	if refused {
		found = append(found, Never)
	}
	return found, err
}

// refuses reports whether a newcomer would not get in after some time.
func (s *state) refuses(ctx context.Context, e *Exhibit, wait int64) (bool, error) {
	to := s.clone()
	to.now += wait
	to.server.expire(to.now)
	who := to.newcomer()
	for {
		c := &to.clients[who]
		if c.view.inside || c.begun && c.view.next == nil {
			return !c.view.inside, nil
		}
		if err := to.send(ctx, e, who); err != nil {
			return false, err
		}
	}
}

// newcomer returns a client that has not begun.
func (s *state) newcomer() int {
	for i := range s.clients {
		if !s.clients[i].begun {
			return i
		}
	}
	s.clients = append(s.clients, client{})
	return len(s.clients) - 1
}
