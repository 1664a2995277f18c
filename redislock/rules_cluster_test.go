package redislock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/redislock/conn"
	"github.com/interlock-go/interlock/redislock/internal/resp"
	"github.com/redis/rueidis"
)

// clusterRules are those of a Cluster whose slots move. The driver asks the puppet; where it is the Conn that carries the rule,
// there are stubs for the nodes.
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
		name: "10 that a subscription has ended is told, and it is made anew", switches: []string{"sunsubscribe"},
		check: func(*puppet, *Driver) error {
			told := newTeller()
			c := stubConn(told)
			defer c.Close()
			s := c.stub("a:1")
			for n := 1; n < 4; n++ {
				for range 2 {
					if err := c.Listen(context.Background(), 7, "channel"); err != nil {
						return err
					}
				}
				if s.subscribed != n {
					return fmt.Errorf("it has subscribed %d times, want %d", s.subscribed, n)
				}
				s.link.subscribed("sunsubscribe", "channel") // the slot has moved
				if len(told.all) != n {
					return errors.New("nobody is told")
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
			replies := []Reply{{Err: errors.New("connection reset")}, {Err: &RefusedError{Err: errors.New("CLUSTERDOWN")}}}
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
	{
		name: "10 MOVED is followed with the same call, and remembered", switches: []string{"moved"},
		check: func(*puppet, *Driver) error {
			return redirected([]string{"MOVED 7 b:1", "", ""}, []string{"a:1", "b:1", "b:1"})
		},
	},
	{
		name: "10 ASK is followed with the same call, once", switches: []string{"asked", "asked once"},
		check: func(*puppet, *Driver) error {
			return redirected([]string{"ASK 7 b:1", "", ""}, []string{"a:1", "asking b:1", "a:1"})
		},
	},
	{
		name: "10 TRYAGAIN is followed by the same call", switches: []string{"later"},
		check: func(*puppet, *Driver) error {
			return redirected(
				[]string{"TRYAGAIN Multiple keys request during rehashing of slot", "ASK 7 b:1", "TRYAGAIN", "ASK 7 b:1", "", ""},
				[]string{"a:1", "a:1", "asking b:1", "a:1", "asking b:1", "a:1"},
			)
		},
	},
}

// redirected makes two calls, the second when the first has had an answer. The nodes answer them in this order, the empty string
// for an answer that is no error, and the calls are to come to them in that one.
func redirected(answers, want []string) error {
	c := stubConn(newTeller())
	defer c.Close()
	var asked []string
	call := Call{Slot: 7, Keys: []string{"key"}, Args: []string{"r", "60000"}}
	same := true
	for _, addr := range []string{"a:1", "b:1"} {
		s := c.stub(addr)
		s.answer = func(got *Call, asking bool) (string, error) {
			if asking {
				asked = append(asked, "asking "+addr)
			} else {
				asked = append(asked, addr)
			}
			same = same && slices.Equal(got.Keys, call.Keys) && slices.Equal(got.Args, call.Args)
			if n := len(asked); n > len(answers) {
				return "", errors.New("it asks once more")
			} else if answer := answers[n-1]; answer != "" {
				return "", resp.ServerError(answer)
			}
			return "G", nil
		}
	}
	for range 2 {
		if r := c.Call(context.Background(), &call); r.Err != nil || r.Text != "G" {
			return fmt.Errorf("after %q: %+v", asked, r)
		}
	}
	if !slices.Equal(asked, want) || !same {
		return fmt.Errorf("%q were asked, want %q; the same each time: %v", asked, want, same)
	}
	return nil
}

// stubs is a Conn to nodes that are stubs. The first of them owns all slots.
type stubs struct{ *rueidisConn }

// stub is a node of a Cluster without a server. What it has not is not called.
type stub struct {
	rueidisCarrier
	link       *rueidisLink
	answer     func(c *Call, asking bool) (string, error)
	subscribed int
}

// noClient is a client that knows nobody.
type noClient struct{ rueidis.Client }

func (noClient) Mode() rueidis.ClientMode { return rueidis.ClientModeCluster }

func stubConn(h Handler) stubs {
	c := stubs{&rueidisConn{client: noClient{}, cluster: true, nodes: make(map[string]*rueidisNode), handler: h, sharded: true}}
	c.base, c.stop = context.WithCancel(context.Background())
	return c
}

func (c stubs) stub(addr string) *stub {
	first := len(c.nodes) == 0
	n := c.nodeAt(addr, 0)
	n.kept = true // nobody connects
	s := &stub{link: newRueidisLink(n, nil)}
	s.link.carrier = s
	n.link.Store(s.link)
	if first {
		c.apply([]rueidisRange{{0, conn.Slots - 1, addr}})
	}
	return s
}

func (s *stub) Call(_ context.Context, c *Call, _ resp.Sending) (string, error) { return s.answer(c, false) }

// Pipeline is how a call comes that is to be served this time only.
func (s *stub) Pipeline(_ context.Context, commands []resp.Command) (answers []resp.Answer) {
	for _, c := range commands {
		text, err := s.answer(c.Call, c.Asking)
		answers = append(answers, resp.Answer{Text: text, Err: err})
	}
	return answers
}

func (s *stub) Subscribe(_ context.Context, kind, channel string) error {
	s.subscribed++
	s.link.subscribed(kind, channel)
	return nil
}
