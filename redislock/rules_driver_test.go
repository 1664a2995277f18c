package redislock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/redislock/conn"
)

// late is how long the pushes below are under way.
const late = 300 * time.Millisecond

var driverRules = []driverRule{
	{
		name:     "6 a pushed grant is trusted no longer than the server holds it",
		switches: []string{"drift", "receipt", "short life"},
		check: func(p *puppet, d *Driver) error {
			p.fast = 0.008
			var granted time.Time
			a, asked, err := pushedTo(p, d, 1, 750*time.Millisecond, func() int64 {
				granted = time.Now().Add(-late)
				return p.at(granted)
			})
			if err != nil || asked {
				return fmt.Errorf("a push over the connection of the replies was not trusted: %w", err)
			}
			ends := granted.Add(2*time.Second - 16*time.Millisecond) // the server's 2 s are a little less of ours
			got := a.grant.Sent.Add(a.grant.Lease - a.grant.Lease/100)
			if a.grant.Sent.After(granted) || got.After(ends) ||
				a.grant.Sent.Before(granted.Add(-10*time.Millisecond)) {
				return fmt.Errorf("granted %v ago, trusted from %v ago, for %v",
					time.Since(granted), time.Since(a.grant.Sent), a.grant.Lease)
			}
			return nil
		},
	},
	{
		name: "6 a push over another connection is confirmed", switches: []string{"link"},
		check: func(p *puppet, d *Driver) error {
			return confirmed(pushedTo(p, d, 2, 500*time.Millisecond, p.now))
		},
	},
	{
		name: "6 a push over a connection that is not known is confirmed", switches: []string{"zero"},
		check: func(p *puppet, d *Driver) error {
			p.answer = func(*Call) Reply { return p.queue(0) }
			return confirmed(pushedTo(p, d, 0, 500*time.Millisecond, p.now))
		},
	},
	{
		name: "6 a push that came before it was made is confirmed", switches: []string{"jump"},
		check: func(p *puppet, d *Driver) error {
			return confirmed(pushedTo(p, d, 1, 500*time.Millisecond, func() int64 { return p.now() + 100_000 }))
		},
	},
	{
		name: "6 and 3 a push older than the last answer is no grant", switches: []string{"back"},
		check: func(p *puppet, d *Driver) error {
			a, asked, err := pushedTo(p, d, 1, 500*time.Millisecond, func() int64 { return p.at(p.begin) - 100_000 })
			if err == nil && !asked {
				return fmt.Errorf("it was taken for one: %+v", a.grant)
			}
			return nil // it waits for its heartbeat, or asks
		},
	},
	{
		name: "6 after a broken connection everybody asks", switches: []string{"again"},
		check: func(p *puppet, d *Driver) error {
			acquireLater(d)
			before := p.asked()
			p.handler.Dropped(1)
			synctest.Wait()
			if p.asked() == before {
				return errors.New("a push that was lost with the connection is not asked for")
			}
			return nil
		},
	},
	{
		name: "4 a heartbeat comes within half a claim", switches: []string{"beat"},
		check: func(p *puppet, d *Driver) error {
			acquireLater(d)
			time.Sleep(30 * time.Second)
			synctest.Wait()
			for i := 1; i < len(p.times); i++ {
				if gap := p.times[i].Sub(p.times[i-1]); gap > mostClaim/2 {
					return fmt.Errorf("heartbeat %d comes after %v", i, gap)
				}
			}
			return nil
		},
	},
	{
		name: "4 in a long queue the process speaks for who waits, within half a claim", switches: []string{"alive"},
		check: func(p *puppet, d *Driver) error {
			p.answer = func(*Call) Reply {
				return Reply{Text: fmt.Sprintf("Q %d 4999:5000 0 0 0 0 ", p.now())}
			}
			acquireLater(d)
			time.Sleep(30 * time.Second)
			synctest.Wait()
			if n := p.asked(); n > 3 {
				return fmt.Errorf("who waits has asked %d times in 30 s", n)
			}
			last := p.begin
			for i, at := range append(p.beats, time.Now()) {
				if gap := at.Sub(last); gap > mostClaim/2 {
					return fmt.Errorf("sign of life %d comes after %v", i, gap)
				}
				last = at
			}
			return nil
		},
	},
	{
		name: "4 every waiter comes back when something may have happened", switches: []string{"next"},
		check: func(p *puppet, d *Driver) error {
			p.answer = func(*Call) Reply { return p.queueUntil(1, 3, 200*time.Millisecond) }
			acquireLater(d)
			time.Sleep(220 * time.Millisecond)
			synctest.Wait()
			if n := p.asked(); n != 2 {
				return fmt.Errorf("it has asked %d times", n)
			}
			if gap := p.times[1].Sub(p.times[0]); gap < 200*time.Millisecond+2*spread {
				return fmt.Errorf("the third asks after %v, with the first", gap)
			}
			return nil
		},
	},
	{
		name: "9 with replicas a push is confirmed", switches: []string{"replicas"}, opts: Options{Replicas: 1},
		check: func(p *puppet, d *Driver) error {
			a, asked, err := pushedTo(p, d, 1, 500*time.Millisecond, p.now)
			if err := confirmed(a, asked, err); err != nil {
				return err
			}
			for i, c := range p.calls {
				if c.Replicas != 1 {
					return fmt.Errorf("call %d waits for no replica", i)
				}
			}
			return nil
		},
	},
	{
		name: "9 a grant that too few replicas have is none", switches: []string{"acked"}, opts: Options{Replicas: 1},
		check: func(p *puppet, d *Driver) error {
			p.answer = func(c *Call) Reply { return p.grants(c, 1, 0) }
			a := <-acquireLater(d)
			if !errors.Is(a.err, driver.ErrUnavailable) {
				return fmt.Errorf("it is returned with %s", class(a.err))
			}
			return nil
		},
	},
	{
		name: "3 what is in doubt is released with a tombstone", switches: []string{"open"},
		check: func(p *puppet, d *Driver) error {
			word := acquireLater(d)
			fail := true
			p.answer = func(c *Call) Reply {
				if fail {
					fail = false
					return Reply{Err: errors.New("connection reset")}
				}
				return p.grants(c, 2, 0)
			}
			p.handler.Dropped(1)
			time.Sleep(time.Second)
			if a := <-word; a.err != nil {
				return a.err
			}
			p.answer = func(*Call) Reply { return Reply{Text: "ok"} }
			if err := d.Release(context.Background(), releaseOf(puppetRequest())); err != nil {
				return err
			}
			if args := p.calls[len(p.calls)-1].Args; len(args) < 2 || args[1] != "r" {
				return fmt.Errorf("it is released with %q", args)
			}
			return nil
		},
	},
	{
		name: "3 an ID is not asked for again after its release", switches: []string{"gone"},
		check: func(p *puppet, d *Driver) error {
			p.answer = func(c *Call) Reply { return p.grants(c, 1, 0) }
			if a := <-acquireLater(d); a.err != nil {
				return a.err
			}
			p.answer = func(*Call) Reply { return Reply{Text: "ok"} }
			if err := d.Release(context.Background(), releaseOf(puppetRequest())); err != nil {
				return err
			}
			p.answer = func(c *Call) Reply { return p.grants(c, 1, 0) }
			if a := <-acquireLater(d); !errors.Is(a.err, driver.ErrLost) || p.asked() != 2 {
				return fmt.Errorf("a copy got %s", class(a.err))
			}
			return nil
		},
	},
	{
		name: "10 in a Cluster nobody queues before the subscription is confirmed", switches: []string{"listen"},
		check: func(p *puppet, d *Driver) error {
			p.sharded = true
			p.answer = func(c *Call) Reply {
				if c.Args[3][0] == 'l' {
					return Reply{Text: fmt.Sprintf("L %d 0 0 0 0 0 ", p.now()), Link: 1}
				}
				return p.queue(1)
			}
			acquireLater(d)
			for i, c := range p.calls {
				if c.Args[3][0] != 'l' && (p.listen < 0 || i < p.listen) {
					return fmt.Errorf("call %d is %q, and nobody listens", i, c.Args[3][:1])
				}
			}
			return nil
		},
	},
	{
		name: "10 all keys of a call are in its slot", switches: []string{"slot"},
		check: func(p *puppet, d *Driver) error {
			p.answer = func(c *Call) Reply { return p.grants(c, 1, 0) }
			for i, name := range []string{"x", "stock:42", "{user}:1", "a{b}c{d}", "{}", "锁"} {
				r := puppetRequest()
				r.Name, r.ID = name, fmt.Sprint("r", i)
				if _, err := d.Acquire(context.Background(), r); err != nil {
					return err
				}
			}
			for _, c := range p.calls {
				for _, key := range c.Keys {
					if conn.SlotOf(key) != c.Slot {
						return fmt.Errorf("%s is not in slot %d of %s", key, c.Slot, c.Keys[0])
					}
				}
			}
			return nil
		},
	},
	{
		name: "12 a weight above the limit is refused at once", switches: []string{"weight"},
		check: func(p *puppet, d *Driver) error {
			r := puppetRequest()
			r.Kind, r.Mode, r.Limit, r.Weight = driver.KindSemaphore, driver.Shared, 3, 4
			p.answer = func(c *Call) Reply { return p.grants(c, 1, 0) }
			if _, err := d.Acquire(context.Background(), r); !errors.Is(err, driver.ErrConflict) || p.asked() > 0 {
				return fmt.Errorf("it got %s, after %d calls", class(err), p.asked())
			}
			return nil
		},
	},
	{
		name: "12 locks of different kinds never meet", switches: []string{"kind"},
		check: func(p *puppet, d *Driver) error {
			p.answer = func(c *Call) Reply { return p.grants(c, 1, 0) }
			keys := make(map[string]bool)
			for i, kind := range kinds {
				r := puppetRequest()
				r.Kind, r.ID = kind, fmt.Sprint("r", i)
				if _, err := d.Acquire(context.Background(), r); err != nil {
					return err
				}
				keys[p.calls[i].Keys[0]] = true
			}
			if len(keys) != len(kinds) {
				return fmt.Errorf("%d kinds have %d keys", len(kinds), len(keys))
			}
			return nil
		},
	},
}

func TestRules_OfTheDriver_AreKept(t *testing.T) {
	for _, r := range slices.Concat(driverRules, clusterRules, retentionRulesOfTheDriver) {
		t.Run(r.name, func(t *testing.T) {
			if err := r.run(t); err != nil {
				t.Fatal(err)
			}
		})
	}
}
