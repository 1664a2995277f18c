package redislock

import (
	"errors"
	"fmt"
	"slices"
	"testing/synctest"
	"time"
)

// clusterRules are those of a Cluster whose slots move that the driver carries. Those that the Conn carries are in
// package rueidisconn.
var clusterRules = []driverRule{
	{
		name: "10 who waits subscribes anew before it asks", switches: []string{"listen again"},
		check: func(p *puppet, d *Driver) error {
			p.sharded = true
			acquireLater(d)
			for range 3 {
				asked, listened := p.asked(), p.listened()
				p.handler.Dropped(0)
				synctest.Wait()
				if p.asked() == asked {
					return errors.New("it does not ask")
				}
				if p.listened() == listened {
					return errors.New("it asks, and does not listen")
				}
			}
			return nil
		},
	},
	{
		name: "10 and 3 what is asked again is asked with the same ID", switches: []string{"same ID"},
		check: func(p *puppet, d *Driver) error {
			p.sharded = true
			word := acquireLater(d)
			replies := []Reply{
				{Err: errors.New("connection reset")}, {Err: &RefusedError{Err: errors.New("CLUSTERDOWN")}},
			}
			p.answer = func(c *Call) Reply {
				if len(replies) == 0 {
					return p.grants(c, 2, 0)
				}
				next := replies[0]
				replies = replies[1:]
				return next
			}
			p.handler.Dropped(1)
			time.Sleep(time.Second)
			if a := <-word; a.err != nil {
				return a.err
			}
			for i, c := range p.calls {
				if c.Args[0] != "r" || !slices.Equal(c.Keys, p.calls[0].Keys) {
					return fmt.Errorf("call %d is for %q, with %q", i, c.Args[0], c.Keys)
				}
			}
			if len(p.calls) < 4 {
				return fmt.Errorf("it has asked %d times", len(p.calls))
			}
			return nil
		},
	},
}
