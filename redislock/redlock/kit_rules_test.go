package redlock

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servers"
	"github.com/interlock-go/interlock/redislock"
	"github.com/redis/rueidis"
)

const (
	// patience bounds what must happen at some time.
	patience = 20 * time.Second
	// nodeTimeout is that of the drivers here, unless they are about it: a machine under load is slow to answer.
	nodeTimeout = 5 * time.Second
	// shortTimeout is that of the others.
	shortTimeout = 400 * time.Millisecond
	// long is a lease that does not end during a test.
	long = 30 * time.Minute
)

// fleet is five servers, each behind a proxy.
type fleet struct {
	t       testing.TB
	nodes   []*servers.RedisNode
	proxies []*servers.Proxy
}

func newFleet(t testing.TB) *fleet {
	t.Helper()
	f := &fleet{t: t, nodes: startNodes(t, 5)}
	for _, n := range f.nodes {
		f.proxies = append(f.proxies, servers.NewProxy(t, n.Addr()))
	}
	return f
}

// addrs are where clients connect.
func (f *fleet) addrs() []string {
	var all []string
	for _, p := range f.proxies {
		all = append(all, p.Addr())
	}
	return all
}

// stop makes nodes hang until the stage ends.
func (s *stage) stop(nodes ...int) {
	for _, i := range nodes {
		s.nodes[i].Stop()
		s.defers = append(s.defers, s.nodes[i].Cont)
	}
}

// heal undoes what the stages do to servers.
func (f *fleet) heal() {
	for i, n := range f.nodes {
		if n.Alive() {
			n.Cont()
		} else {
			n.Restart()
		}
		f.proxies[i].Pass()
		f.marked(i)
	}
}

// marked makes a node one that has its data, as far as drivers can tell.
func (f *fleet) marked(i int) {
	f.t.Helper()
	f.do(i, "EVAL", `return redis.call('SET', KEYS[1], string.match(redis.call('INFO', 'server'), 'run_id:(%w+)'))`,
		"1", "interlock:"+markKey)
}

// do sends an operator's command to one node.
func (f *fleet) do(i int, args ...string) any {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	reply, err := f.nodes[i].Do(ctx, args...)
	if err != nil {
		f.t.Fatalf("node %d: %v: %v", i, args, err)
	}
	return reply
}

// soonEnough bounds what is noticed only by its absence, so it is short where a rule has been taken out.
func soonEnough() time.Duration {
	if setOff != nil {
		return 1500 * time.Millisecond
	}
	return patience
}

// stage is where one rule is checked.
type stage struct {
	*fleet
	name   string // of the lock
	defers []func()
}

// failure is how a check ends early.
type failure struct{ err error }

// play runs a check, and puts everything back.
func (f *fleet) play(check func(s *stage)) (err error) {
	s := &stage{fleet: f, name: "rule-" + rand.Text()[:10]}
	defer func() {
		for i := len(s.defers) - 1; i >= 0; i-- {
			s.defers[i]()
		}
		f.heal()
	}()
	defer func() {
		switch r := recover().(type) {
		case nil:
		case failure:
			err = r.err
		default:
			panic(r)
		}
	}()
	check(s)
	return nil
}

// must ends the check unless ok.
func (s *stage) must(ok bool, format string, args ...any) {
	if !ok {
		panic(failure{fmt.Errorf(format, args...)})
	}
}

// open returns a driver, which is closed with the stage.
func (s *stage) open(query ...string) *Driver {
	q := strings.Join(append(query, "check=none"), "&")
	if !strings.Contains(q, "node-timeout") {
		q += "&node-timeout=" + nodeTimeout.String()
	}
	if !strings.Contains(q, "longest-lease") {
		q += "&longest-lease=1h"
	}
	r := s.driver(s.within(patience), "redlock://"+strings.Join(s.addrs(), ",")+"?"+q)
	s.soon("all nodes are connected", func() bool {
		for _, n := range r.nodes {
			if n.driver() == nil {
				return false
			}
		}
		return true
	})
	return r
}

// on returns a driver on one node alone, as which another client's vote can be played.
func (s *stage) on(i int) *redislock.Driver {
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{s.nodes[i].Addr()}, DisableCache: true, ForceSingleClient: true,
	})
	s.must(err == nil, "connect: %v", err)
	d, err := redislock.New(client, &redislock.Options{Check: redislock.CheckNone})
	s.must(err == nil, "open: %v", err)
	s.defers = append(s.defers, client.Close, func() { _ = d.Close() })
	return d
}

func (s *stage) key() driver.Key { return driver.Key{Kind: driver.KindMutex, Name: s.name} }

// ask makes a request for the stage's lock.
func (s *stage) ask() *driver.Request {
	return &driver.Request{Key: s.key(), ID: rand.Text(), Owner: "o", Client: "c", Weight: 1, Tokens: 1, Lease: long}
}

// try is a request that does not wait.
func (s *stage) try() *driver.Request {
	r := s.ask()
	r.Try = true
	return r
}

// within returns a context.
func (s *stage) within(d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	s.defers = append(s.defers, cancel)
	return ctx
}

// take acquires, and fails if that is refused.
func (s *stage) take(d driver.Driver, r *driver.Request) driver.Grant {
	g, err := d.Acquire(s.within(patience), r)
	s.must(err == nil, "acquire: %v", err)
	return g
}

// give releases.
func (s *stage) give(d driver.Driver, r *driver.Request) {
	err := d.Release(s.within(patience), &driver.Release{Key: r.Key, ID: r.ID})
	s.must(err == nil, "release: %v", err)
}

// soon waits until something is so.
func (s *stage) soon(what string, is func() bool) { s.inTime(patience, what, is) }

func (s *stage) inTime(limit time.Duration, what string, is func() bool) {
	for end := time.Now().Add(limit); time.Now().Before(end); <-time.After(2 * time.Millisecond) {
		if is() {
			return
		}
	}
	s.must(is(), "not after %v: %s", limit, what)
}

// has reports whether a node has anything of the lock.
func (s *stage) has(i int) bool { return s.do(i, "EXISTS", "interlock:mutex:"+s.name) == int64(1) }

// ahead makes the tokens of a node run ahead, as a clock that is ahead does.
func (s *stage) ahead(i int, by time.Duration) {
	d := s.on(i)
	r := s.ask()
	s.take(d, r)
	err := d.Confirm(s.within(patience), &redislock.Confirmation{
		Key: r.Key, ID: r.ID, Lease: long, Token: uint64(time.Now().Add(by).UnixMicro()), Tokens: 1,
	})
	s.must(err == nil, "confirm: %v", err)
	s.give(d, r)
}

// isUnavailable fails unless err says that there is no majority, and no more than that.
func (s *stage) isUnavailable(err error) {
	s.must(
		errors.Is(err, driver.ErrUnavailable) && !errors.Is(err, driver.ErrHeld) &&
			!errors.Is(err, context.DeadlineExceeded),
		"without a majority: %v", err)
}

// split gives the votes of three nodes to two who wait, so that nobody has a majority or can get one,
// until they are taken away.
func (s *stage) split() (end func()) {
	var ends []func()
	for i, id := range []string{"x", "x", "y"} {
		d, r := s.on(i), s.ask()
		r.Owner = joinRoundOwner(id, "other")
		s.take(d, r)
		ends = append(ends, func() { s.give(d, r) })
	}
	return func() {
		for _, end := range ends {
			end()
		}
	}
}

// renew renews a hold.
func (s *stage) renew(d *Driver, r *driver.Request) (err error) {
	d.Renew(s.within(patience), []driver.Renewal{{Key: r.Key, ID: r.ID, Lease: r.Lease}}, func(_ int, e error) {
		err = e
	})
	return err
}

// inBackground acquires until it is told to end.
func (s *stage) inBackground(d driver.Driver, r *driver.Request) (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { // ends with ctx
		defer close(done)
		_, _ = d.Acquire(ctx, r) // what becomes of it is seen in the nodes
	}()
	return func() { cancel(); <-done }
}

// openBeside is open while a node hangs.
func (s *stage) openBeside() *Driver {
	ctx := s.within(patience)
	return s.driver(ctx,
		"redlock://"+strings.Join(s.addrs(), ",")+"?check=none&longest-lease=1h&node-timeout="+nodeTimeout.String())
}

func (s *stage) driver(ctx context.Context, url string) *Driver {
	d, err := driver.DefaultMux.Open(ctx, url, driver.Config{})
	s.must(err == nil, "open: %v", err)
	s.defers = append(s.defers, func() { _ = d.Close() })
	return d.(*Driver)
}
