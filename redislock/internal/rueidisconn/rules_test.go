package rueidisconn

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/interlock-go/interlock/internal/longrun"
	"github.com/interlock-go/interlock/internal/switches"
	"github.com/interlock-go/interlock/redislock/conn"
	"github.com/interlock-go/interlock/redislock/internal/resp"
	"github.com/redis/rueidis"
)

// rule is one of the rules of a Cluster whose slots move, without which the protocol breaks, that the Conn carries.
type rule struct {
	name     string
	switches []string // each of which takes it out
	check    func() error
}

var rules = []rule{
	{
		name: "10 that a subscription has ended is told, and it is made anew", switches: []string{"sunsubscribe"},
		check: func() error {
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
				if len(told.All) != n {
					return errors.New("nobody is told")
				}
			}
			return nil
		},
	},
	{
		name: "10 MOVED is followed with the same call, and remembered", switches: []string{"moved"},
		check: func() error {
			return redirected([]string{"MOVED 7 b:1", "", ""}, []string{"a:1", "b:1", "b:1"})
		},
	},
	{
		name: "10 ASK is followed with the same call, once", switches: []string{"asked", "asked once"},
		check: func() error {
			return redirected([]string{"ASK 7 b:1", "", ""}, []string{"a:1", "asking b:1", "a:1"})
		},
	},
	{
		name: "10 TRYAGAIN is followed by the same call", switches: []string{"later"},
		check: func() error {
			return redirected(
				[]string{
					"TRYAGAIN Multiple keys request during rehashing of slot", "ASK 7 b:1", "TRYAGAIN",
					"ASK 7 b:1", "", "",
				},
				[]string{"a:1", "a:1", "asking b:1", "a:1", "asking b:1", "a:1"},
			)
		},
	},
}

// setOff takes out the rule with that switch; it is nil unless the switches have been put in: see package switches.
var setOff func(name string)

var levers = []switches.Lever{
	{"listen.go", "if l.lostSubscription(channel) {", `if !off("sunsubscribe") && l.lostSubscription(channel) {`},
	{"call.go", "n.conn.moved(slot, j.Addr)", `unless("moved", n.conn.moved, func(uint16, string) {})(slot, j.Addr)`},
	{
		"call.go", "\treturn t.Next(j, err, n.conn.failsOver())",
		"\tif off(\"later\") && j.Verdict == conn.Later {\n\t\tj.Verdict = conn.Refused\n\t}\n" +
			"\twait, final = t.Next(j, err, n.conn.failsOver())\n" +
			"\tif off(\"asked\") {\n\t\tt.Asking = \"\"\n\t}\n" +
			"\tif off(\"asked once\") && j.Verdict == conn.Asked {\n\t\tn.conn.moved(slot, j.Addr)\n\t}\n" +
			"\treturn wait, final",
	},
}

func TestRules_OfTheConn_Hold(t *testing.T) {
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			if err := r.check(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestRules_OfTheConn_AreNecessary takes out one rule after the other, and its check must notice.
func TestRules_OfTheConn_AreNecessary(t *testing.T) {
	if setOff == nil {
		switches.InPlace(t, levers)
		longrun.Only(t) // it compiles the package and its tests anew
		switches.Run(t, "rueidisconn", t.Name(), levers)
		return
	}
	for _, r := range rules {
		for _, name := range r.switches {
			t.Run(r.name+"/"+name, func(t *testing.T) {
				setOff(name)
				defer setOff("")
				if err := r.check(); err == nil {
					t.Fatal("the check does not notice that the rule is missing")
				} else {
					t.Logf("noticed: %v", err)
				}
			})
		}
	}
}

// redirected makes two calls, the second when the first has had an answer. The nodes answer them in this order, the
// empty string for an answer that is no error, and the calls are to come to them in that one.
func redirected(answers, want []string) error {
	c := stubConn(newTeller())
	defer c.Close()
	var asked []string
	call := conn.Call{Slot: 7, Keys: []string{"key"}, Args: []string{"r", "60000"}}
	same := true
	for _, addr := range []string{"a:1", "b:1"} {
		s := c.stub(addr)
		s.answer = func(got *conn.Call, asking bool) (string, error) {
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
type stubs struct{ *Conn }

// stub is a node of a Cluster without a server. What it has not is not called.
type stub struct {
	carrier
	link       *link
	answer     func(c *conn.Call, asking bool) (string, error)
	subscribed int
}

// noClient is a client that knows nobody.
type noClient struct{ rueidis.Client }

func (noClient) Mode() rueidis.ClientMode { return rueidis.ClientModeCluster }

func stubConn(h conn.Handler) stubs {
	c := stubs{&Conn{client: noClient{}, cluster: true, nodes: make(map[string]*node), handler: h, sharded: true}}
	c.base, c.stop = context.WithCancel(context.Background())
	return c
}

func (c stubs) stub(addr string) *stub {
	first := len(c.nodes) == 0
	n := c.nodeAt(addr, 0)
	n.kept = true // nobody connects
	s := &stub{link: newLink(n, nil)}
	s.link.carrier = s
	n.link.Store(s.link)
	if first {
		c.apply([]slotRange{{0, conn.Slots - 1, addr}})
	}
	return s
}

func (s *stub) Call(_ context.Context, c *conn.Call, _ resp.Sending) (string, error) {
	return s.answer(c, false)
}

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
