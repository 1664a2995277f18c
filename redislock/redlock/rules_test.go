package redlock

import (
	"errors"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/drivertest"
	"github.com/interlock-go/interlock/internal/longrun"
	"github.com/interlock-go/interlock/internal/servers"
	"github.com/interlock-go/interlock/internal/switches"
)

// rule is one of the rules of the algorithm, as something that can be checked, and the switches that take it out.
type rule struct {
	name     string
	switches []string
	check    func(s *stage)
}

var rules = []rule{
	{
		// Why a majority: two majorities have a node in common, which votes for one of them.
		name: "a minority is no lock, and says so in time", switches: []string{"majority", "deadline"},
		check: func(s *stage) {
			d := s.open("node-timeout=" + shortTimeout.String())
			s.stop(2, 3, 4)
			for _, r := range []*driver.Request{s.try(), s.ask()} {
				_, err := d.Acquire(s.within(3*shortTimeout+soonEnough()/10), r)
				s.isUnavailable(err)
			}
		},
	},
	{
		// Why measure: the leases of the first votes run while the last is waited for.
		name: "the time that the majority took is not trusted", switches: []string{"before"},
		check: func(s *stage) {
			const late = 100 * time.Millisecond
			d := s.open()
			s.delay(late)
			g := s.take(d, s.ask())
			s.must(!g.Sent.Add(late).After(time.Now()), "replies take %v, and the lease is counted from %v ago", late,
				time.Since(g.Sent))
		},
	},
	{
		name: "a majority that comes after the lease is no lock", switches: []string{"elapsed"},
		check: func(s *stage) {
			d := s.open()
			s.delay(150 * time.Millisecond)
			for _, r := range []*driver.Request{s.try(), s.ask()} {
				r.Lease = 100 * time.Millisecond
				_, err := d.Acquire(s.within(patience), r)
				s.isUnavailable(err)
			}
		},
	},
	{
		name: "clocks of different rates are allowed for", switches: []string{"drift"},
		check: func(s *stage) {
			is := left(time.Now(), time.Minute)
			s.must(is <= time.Minute-600*time.Millisecond, "of a minute %v are left at its beginning", is)
		},
	},
	{
		// Why release everywhere: a node whose reply was lost has voted.
		name: "a release reaches nodes whose reply was lost", switches: []string{"everywhere"},
		check: func(s *stage) {
			d := s.open()
			s.proxies[3].DropReplies()
			s.proxies[4].DropReplies()
			r := s.ask()
			s.take(d, r)
			s.soon("the requests have arrived", func() bool { return s.has(3) && s.has(4) })
			s.give(d, r)
			s.inTime(soonEnough(), "no node has anything left", func() bool { return !s.has(3) && !s.has(4) })
			for _, p := range s.proxies {
				p.Reset()
			}
		},
	},
	{
		name: "a hold without a majority is not renewed", switches: []string{"renewal"},
		check: func(s *stage) {
			d := s.open()
			r := s.ask()
			s.take(d, r)
			s.soon("all nodes have voted", func() bool {
				return s.has(0) && s.has(1) && s.has(2) && s.has(3) && s.has(4)
			})
			for i := range 3 {
				s.do(i, "DEL", "interlock:mutex:"+s.name)
			}
			err := s.renew(d, r)
			s.must(errors.Is(err, driver.ErrLost), "renewal of a hold that three of five nodes have lost: %v", err)
			s.soon("the others are free", func() bool { return !s.has(3) && !s.has(4) })
		},
	},
	{
		name: "one node that hangs costs nothing", switches: []string{"grace"},
		check: func(s *stage) {
			d := s.open()
			s.stop(4)
			ctx := s.within(soonEnough())
			for range 20 {
				r := s.ask()
				_, err := d.Acquire(ctx, r)
				s.must(err == nil, "acquire beside a node that hangs: %v", err)
				err = d.Release(ctx, &driver.Release{Key: r.Key, ID: r.ID})
				s.must(err == nil, "release beside a node that hangs: %v", err)
			}
		},
	},
	{
		name: "tokens grow although no node sees every grant", switches: []string{"write back"},
		check: func(s *stage) {
			a := s.open()
			s.ahead(4, time.Hour)
			s.nodes[0].Stop()
			one := s.ask()
			first := s.take(a, one) // of nodes 1 to 4
			s.give(a, one)
			s.nodes[0].Cont()
			s.stop(4)
			two := s.ask()
			second := s.take(s.openBeside(), two) // of nodes 0 to 3
			s.must(second.Token > first.Token, "token %d after %d", second.Token, first.Token)
		},
	},
	{
		name: "tokens grow without a write-back if every node has voted", switches: []string{"median"},
		check: func(s *stage) {
			d := s.open()
			s.ahead(4, 2*time.Hour)
			one := s.ask()
			first := s.take(d, one)
			s.give(d, one)
			s.stop(4)
			second := s.take(d, s.ask())
			s.must(second.Token > first.Token, "token %d after %d", second.Token, first.Token)
		},
	},
	{
		name: "all nodes are shown the same value, so a copy of the request is known", switches: []string{"same value"},
		check: func(s *stage) {
			r := s.try()
			first := s.take(s.open(), r)
			again := s.take(s.open(), r)
			s.must(first.Nonce == again.Nonce, "%+v and %+v", first, again)
		},
	},
	{
		name: "a node that comes back empty does not vote", switches: []string{"rest"}, check: checkRest,
	},
	{
		name: "votes that are no majority are given back", switches: []string{"yield"},
		check: func(s *stage) {
			s.split()
			d := s.open()
			done := s.inBackground(d, s.ask())
			other := s.on(4)
			s.inTime(soonEnough(), "somebody else gets the vote of the last node", func() bool {
				r := s.try()
				_, err := other.Acquire(s.within(patience), r)
				return err == nil
			})
			done()
		},
	},
}

// checkRest kills three nodes one after the other, so that a majority has forgotten what the others know.
func checkRest(s *stage) {
	a := s.open()
	s.nodes[3].Kill()
	s.nodes[4].Kill()
	hold := s.ask()
	s.take(a, hold) // of nodes 0 to 2
	for _, i := range []int{3, 4, 2} {
		s.nodes[i].Restart() // without its data
	}
	r := s.try()
	_, err := s.open().Acquire(s.within(patience), r)
	s.must(err != nil, "a second owner beside the first, by the votes of three nodes that have forgotten it")
	s.isUnavailable(err)

	// After the longest lease they vote again, for another lock: a request of the hold's that was under way when they
	// were killed may be what they know first.
	other := s.open("longest-lease=2s")
	s.kill(0, 1)
	s.soon("the nodes vote again", func() bool {
		r := s.try()
		r.Name += "-free"
		r.Lease = time.Second
		_, err := other.Acquire(s.within(patience), r)
		return err == nil
	})
}

// delay makes all replies late.
func (s *stage) delay(by time.Duration) {
	for _, p := range s.proxies {
		p.Delay(servers.ToClient, by)
	}
}

// TestRules_AreKeptAndNecessary checks the rules, and that each check fails when its rule is taken out.
func TestRules_AreKeptAndNecessary(t *testing.T) {
	if drivertest.Apart(t) {
		return
	}
	const tries = 5
	f := newFleet(t)
	for _, r := range rules {
		if setOff == nil {
			t.Run(r.name, func(t *testing.T) {
				if err := f.play(r.check); err != nil {
					t.Fatal(err)
				}
			})
			continue
		}
		for _, name := range r.switches {
			t.Run(r.name+"/"+name, func(t *testing.T) {
				setOff(name)
				defer setOff("")
				for range tries { // which servers answer first is the machine's to decide, and may hide it
					if err := f.play(r.check); err != nil {
						t.Logf("noticed: %v", err)
						return
					}
				}
				t.Fatal("the check does not notice that the rule is missing")
			})
		}
	}
	if setOff == nil {
		t.Run("without them", func(t *testing.T) {
			switches.InPlace(t, levers)
			longrun.Only(t) // it compiles the package and its tests anew
			switches.Run(t, "redlock", "TestRules_AreKeptAndNecessary", levers)
		})
	}
}
