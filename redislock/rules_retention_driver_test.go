package redislock

import (
	"context"
	"fmt"
	"strings"

	"github.com/interlock-go/interlock/driver"
)

// retentionRulesOfTheDriver are what a driver has to do so that its client hears that another wants a lock.
var retentionRulesOfTheDriver = []driverRule{
	{
		name: "a recall that comes before the grant is told after it", switches: []string{"early word"},
		check: func(p *puppet, d *Driver) error {
			p.answer = func(c *Call) Reply {
				p.handler.Pushed(1, p.channel, "W r 1")
				return p.grants(c, 1, 0)
			}
			return heldAndTold(d, func(*driver.Request) error { return nil })
		},
	},
	{
		name: "a renewal that says that others wait is told", switches: []string{"word of a renewal"},
		check: func(p *puppet, d *Driver) error {
			p.answer = func(c *Call) Reply { return p.grants(c, 1, 0) }
			return heldAndTold(d, func(r *driver.Request) error {
				p.answer = func(*Call) Reply { return Reply{Text: "w"} }
				return renewOne(context.Background(), d, renewalOf(r, r.Lease))
			})
		},
	},
	{
		name: "a renewal keeps the mark of its hold", switches: []string{"mark"},
		check: func(p *puppet, d *Driver) error {
			p.answer = func(c *Call) Reply { return p.grants(c, 1, 0) }
			return heldAndTold(d, func(r *driver.Request) error {
				p.answer = func(*Call) Reply { return Reply{Text: "w"} }
				err := renewOne(context.Background(), d, renewalOf(r, r.Lease))
				for i, c := range p.calls {
					if text := c.Args[3]; !strings.Contains(text, `{"r":1,"o":"o"`) {
						return fmt.Errorf("call %d says %s", i, text)
					}
				}
				return err
			})
		},
	},
}

// heldAndTold has a request that may be retained granted, goes on with f, and returns an error unless its client has
// been told once that another wants the lock.
func heldAndTold(d *Driver, f func(r *driver.Request) error) error {
	told := 0
	r := puppetRequest()
	r.Retains, r.Wanted = true, func() { told++ }
	if _, err := d.Acquire(context.Background(), r); err != nil {
		return err
	}
	if err := f(r); err != nil {
		return err
	}
	if told != 1 {
		return fmt.Errorf("it was told %d times that another wants the lock", told)
	}
	return nil
}
