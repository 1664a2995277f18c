package search

import (
	"context"

	"github.com/interlock-go/interlock/lab/internal/story"
)

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
