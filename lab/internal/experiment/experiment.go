// Package experiment has the experiments of the lab, one for each algorithm of the articles: each makes an exhibit fail
// at scripted steps on real servers, and then shows the sound lock in the same events.
package experiment

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/internal/servers"
	"github.com/interlock-go/interlock/lab/exhibit"
	"github.com/interlock-go/interlock/lab/internal/play"
	"github.com/interlock-go/interlock/lab/internal/story"
)

// Experiment is one of the lab.
type Experiment struct {
	ID    string
	Title story.Text
	About story.Text
	Needs []string // servers, as INTERLOCK_REQUIRE names them

	run func(p *play.Play)
}

// All returns the experiments in the order of the articles.
func All() []*Experiment {
	return []*Experiment{
		d01(), d02(), d03(), d04(), d05(), d06(), d07(), d08(), d09(), d10(), d11(), d12(),
		d13(), d14(), d15(), d16(), d17(),
	}
}

// Find returns the experiment of an id, in whatever case, or nil.
func Find(id string) *Experiment {
	for _, e := range All() {
		if strings.EqualFold(e.ID, id) {
			return e
		}
	}
	return nil
}

// Run runs the experiment. What was to be shown and was not is in the story, and an error of t.
func (e *Experiment) Run(ctx context.Context, t testing.TB) *story.Story {
	p := play.New(ctx, t, e.ID, e.Title, e.About)
	e.run(p)
	return p.Story()
}

const (
	key = "stock" // the lock of all experiments

	// lease is that of the sound lock where it must be lost or outlasted in an experiment: short, because the audience
	// waits for it, and long enough for a machine that stands still for two seconds between two renewals.
	lease = 4 * time.Second
)

// caller is an actor whose call to lock goes on while the lab does.
type caller struct {
	*play.Actor
	got chan error // what the call returned
}

func newCaller(a *play.Actor) caller { return caller{a, make(chan error, 1)} }

// patience bounds every wait for a call.
const patience = 30 * time.Second

// hears waits for what the call tells the lab. A call that returns instead ends the experiment.
func (c *caller) hears(p *play.Play, what <-chan struct{}) {
	p.Helper()
	select {
	case <-what:
	case err := <-c.got:
		p.Fatalf("%s: the exhibit's Lock returned %v", c.Name(), err)
	case <-p.Context().Done():
		p.Fatal(p.Context().Err())
	case <-time.After(patience):
		p.Fatalf("%s neither waits nor is woken", c.Name())
	}
}

// locked waits until the call has taken the lock.
func (c *caller) locked(p *play.Play) {
	p.Helper()
	select {
	case err := <-c.got:
		c.Got(true, true, err)
	case <-p.Context().Done():
		p.Fatal(p.Context().Err())
	case <-time.After(patience):
		p.Fatalf("%s does not get the lock", c.Name())
	}
}

// goesOn lets the call go on, which stands still where it was woken.
func (c *caller) goesOn(p *play.Play, turn chan<- struct{}) {
	p.Helper()
	select {
	case turn <- struct{}{}:
	case <-p.Context().Done(): // it goes on by itself then
		p.Fatal(p.Context().Err())
	}
}

// nodes is how many servers Redlock uses.
const nodes = 5

// fiveNodes starts five servers that know nothing of each other.
func fiveNodes(p *play.Play) []*play.Redis {
	p.Helper()
	all := make([]*play.Redis, nodes)
	for i := range all {
		all[i] = p.Redis()
		p.Watch(label(i), all[i].Value(key))
	}
	return all
}

// fiveMore starts five servers for interlock's Redlock.
func fiveMore(p *play.Play) []*play.Redis {
	p.Helper()
	all := make([]*play.Redis, nodes)
	for i := range all {
		all[i] = p.Redis()
		// The mark of a server that has been in use for longer than the longest lease, so that it may vote. A driver
		// would set it on five new servers only if it reaches all of them at once, which a busy machine may not let it.
		all[i].Ask("EVAL",
			`return redis.call('SET', KEYS[1], string.match(redis.call('INFO', 'server'), 'run_id:(%w+)'))`, "1",
			"interlock:redlock")
		p.WatchNode(label(i), all[i], key)
	}
	return all
}

// redlock is the address of servers as interlock opens them. A slow answer of a busy machine is not a dead node.
func redlock(addrs []string) string {
	return "redlock://" + strings.Join(addrs, ",") + "?node-timeout=10s"
}

// addrs are the addresses of servers.
func addrs(nodes []*play.Redis) []string {
	var all []string
	for _, node := range nodes {
		all = append(all, node.Addr())
	}
	return all
}

// behind puts cables before those servers that reachable does not name, and returns all addresses
// and what cuts the cables.
func behind(p *play.Play, nodes []*play.Redis, reachable ...int) (all []string, cut func()) {
	p.Helper()
	var cables []*servers.Proxy
	all = addrs(nodes)
	for i := range all {
		if !slices.Contains(reachable, i+1) {
			cable := servers.NewProxy(p, all[i])
			all[i] = cable.Addr()
			cables = append(cables, cable)
		}
	}
	return all, func() {
		for _, cable := range cables {
			cable.Refuse()
			cable.Reset()
		}
	}
}

func label(i int) string { return "node " + strconv.Itoa(i+1) }

// toAll connects an actor to servers.
func toAll(a *play.Actor, nodes []*play.Redis) []exhibit.Conn {
	var all []exhibit.Conn
	for i, node := range nodes {
		all = append(all, a.Dial(node.Addr(), label(i)))
	}
	return all
}
