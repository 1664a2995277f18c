package redlock

import (
	"context"
	"errors"
	"testing"

	"github.com/interlock-go/interlock/driver"
)

// TestBroken is about holds that are taken away, on each node by itself.
func TestBroken(t *testing.T) {
	f := newFleet(t)
	for name, check := range map[string]func(s *stage){
		"a hold is lost when a majority was broken, and its votes are given up":        brokenByNodes,
		"also by votes that were won before the wait was resumed":                      brokenAfterAResume,
		"a hold that is broken before Acquire returns is refused":                      brokenBeforeItIsHeld,
		"a Break that is read before the answer ends the wait":                         brokenBeforeTheAnswer,
		"Break ends votes that came, or were confirmed, after it had looked":           brokenByASecondLook,
		"a round that has its votes ends when the driver is closed, and does not spin": closedWithAMajority,
	} {
		t.Run(name, func(t *testing.T) {
			if err := f.play(check); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// breakNode breaks the hold on one node alone.
func (s *stage) breakNode(i int) {
	n := s.on(i)
	info, _, _, err := n.LookTokens(s.within(patience), s.key())
	s.must(err == nil && len(info.Holders) == 1, "node %d shows %+v, %v", i, info, err)
	err = n.Break(s.within(patience), s.key(), info.Holders[0].Token)
	s.must(err == nil, "%v", err)
}

// askTold is a request, and what becomes of its hold.
func (s *stage) askTold() (*driver.Request, <-chan driver.LostReason) {
	lost := make(chan driver.LostReason, 1)
	r := s.ask()
	r.Lost = func(reason driver.LostReason, _ error) { lost <- reason }
	return r, lost
}

// isBroken fails unless the holder is told of it, and nothing is left.
func (s *stage) isBroken(lost <-chan driver.LostReason) {
	reason := receive(s, "the loss", lost)
	s.must(reason == driver.LostBroken, "lost: %s", reason)
	s.soon("nothing is left", func() bool { return !s.has(0) && !s.has(1) && !s.has(2) && !s.has(3) && !s.has(4) })
}

func brokenByNodes(s *stage) {
	d := s.open()
	r, lost := s.askTold()
	s.take(d, r)
	s.votes(d, r, 5) // a majority was enough
	for i := range 3 {
		s.must(len(lost) == 0, "the hold is lost with a majority left")
		s.breakNode(i)
	}
	s.isBroken(lost)
}

// votes waits until the latest round of a request has so many votes.
func (s *stage) votes(d *Driver, r *driver.Request, n int) {
	s.soon("the votes", func() bool {
		c := d.holder(requestKey{r.Key, r.ID})
		if c == nil {
			return false
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.rd != nil && c.rd.count(granted) == n
	})
}

func brokenAfterAResume(s *stage) {
	d := s.open()
	r, lost := s.askTold()
	for i := 2; i < 5; i++ {
		s.nodes[i].Stop()
	}
	ctx, cancel := context.WithCancel(s.within(patience))
	ended := make(chan error, 1)
	go func() { // ends with ctx
		_, err := d.Acquire(ctx, r)
		ended <- err
	}()
	s.votes(d, r, 2)
	cancel()
	err := receive(s, "the end of the wait", ended)
	s.must(errors.Is(err, context.Canceled), "a wait that was cancelled: %v", err)
	for i := 2; i < 5; i++ {
		s.nodes[i].Cont()
	}
	s.take(d, r)
	s.votes(d, r, 5)
	for i := range 3 {
		s.breakNode(i)
	}
	s.isBroken(lost)
}

func brokenBeforeItIsHeld(s *stage) {
	d := s.open()
	r, lost := s.askTold()
	c, _, err := d.enter(r)
	s.must(err == nil, "%v", err)
	rd, err := c.next(0, true)
	s.must(err == nil, "%v", err)
	err = rd.run(s.within(patience))
	s.must(err == nil, "%v", err)
	s.votes(d, r, 5)
	for i := range 3 {
		s.breakNode(i)
	}
	s.votes(d, r, 2)
	_, err = c.take()
	var why *driver.LostError
	s.must(errors.As(err, &why) && why.Reason == driver.LostBroken, "a hold of which two votes are left: %v", err)
	s.must(len(lost) == 0, "of what was never held the loss is told")
	rd.abandon(s.within(patience))
}

func brokenBeforeTheAnswer(s *stage) {
	d := s.open()
	r, lost := s.askTold()
	s.stop(0, 1, 2, 3, 4) // so no answer is there yet
	c, _, err := d.enter(r)
	s.must(err == nil, "%v", err)
	rd, err := c.next(0, true)
	s.must(err == nil, "%v", err)
	for i := range 3 {
		rd.lost(i, driver.LostBroken, nil)
	}
	for _, n := range s.nodes {
		n.Cont()
	}
	s.votes(d, r, 2)
	var why *driver.LostError
	err = rd.run(s.within(patience))
	s.must(errors.As(err, &why) && why.Reason == driver.LostBroken, "a wait of which two votes are left: %v", err)
	_, err = c.take()
	s.must(errors.As(err, &why) && why.Reason == driver.LostBroken, "a hold of which two votes are left: %v", err)
	s.must(len(lost) == 0, "of what was never held the loss is told")
	rd.abandon(s.within(patience))
}

func brokenByASecondLook(s *stage) {
	for _, seen := range []block{{}, {1, 1}} { // without a vote, and with the token that it was first given
		a, b := s.open(), s.open()
		r, lost := s.askTold()
		s.take(a, r)
		h := &hold{id: r.ID}
		for range s.nodes {
			h.blocks = append(h.blocks, seen)
		}
		err := b.breakHold(s.within(patience), s.key(), h)
		s.must(err == nil, "break: %v", err)
		s.isBroken(lost)
	}
}

func closedWithAMajority(s *stage) {
	d := s.open()
	r := s.ask()
	s.kill(4) // so that the votes are to be confirmed; of a node that hangs Close says something itself
	c, _, err := d.enter(r)
	s.must(err == nil, "%v", err)
	rd, err := c.next(0, true)
	s.must(err == nil, "%v", err)
	s.votes(d, r, 4)
	err = d.Close()
	s.must(err == nil, "close: %v", err)
	err = rd.run(s.within(patience))
	s.must(errors.Is(err, driver.ErrClosed), "the votes are there, and the driver is closed: %v", err)
}

// TestInspection_OfWaits shows that what one node alone knows of is no wait.
func TestInspection_OfWaits(t *testing.T) {
	f := newFleet(t)
	err := f.play(func(s *stage) {
		d := s.open()
		s.take(d, s.ask())
		waiters := func() (n int) {
			for info, err := range d.Locks(s.within(patience), s.name) {
				s.must(err == nil, "%v", err)
				n += len(info.Waiters)
			}
			return n
		}
		r := s.ask()
		r.Owner = joinRoundOwner(r.ID, "other")
		for i := range s.nodes {
			n := s.on(i)
			s.defers = append(s.defers, s.inBackground(n, r))
			s.soon("it waits there", func() bool {
				info, _, _, err := n.LookTokens(s.within(patience), s.key())
				return err == nil && len(info.Waiters) == 1
			})
			want := 0
			if i+1 >= d.quorum {
				want = 1
			}
			s.must(waiters() == want, "%d nodes know who waits, and %d are shown", i+1, waiters())
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}
