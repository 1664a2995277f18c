package redislock_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/internal/locktest"
	"github.com/interlock-go/interlock/internal/servers"
	"github.com/interlock-go/interlock/redislock"
	"github.com/redis/rueidis"
)

// cables are proxies before all servers of a deployment. The servers tell clients their own addresses, so only a client
// that dials by itself comes through.
type cables map[string]*servers.Proxy

func newCables(t testing.TB, nodes []*servers.RedisNode) cables {
	t.Helper()
	c := cables{}
	for _, n := range nodes {
		c[n.Addr()] = servers.NewProxy(t, n.Addr())
	}
	return c
}

// dial is how rueidis connects.
func (c cables) dial(ctx context.Context, addr string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
	return d.DialContext(ctx, "tcp", c[addr].Addr())
}

func (c cables) cut(d servers.Direction) {
	for _, p := range c {
		p.BlackHole(d)
	}
}

func (c cables) mend() {
	for _, p := range c {
		p.Pass()
	}
}

// deployment is several servers, for a URL and for a client that a program makes itself.
type deployment struct {
	url    string
	nodes  []*servers.RedisNode
	option rueidis.ClientOption
}

// As before a server that stands alone: behind a cable that is cut there is no overlap under Sentinel
// and in a Cluster either.
func TestBlackHole_BeforeAHolderOfSeveralServers_ItIsOutBeforeTheNextIsIn(t *testing.T) {
	s, c := servers.RedisSentinel(t, 1, nil), servers.RedisCluster(t, 3, 0, nil)
	for name, to := range map[string]deployment{
		"UnderSentinel": {
			sentinelURL(s), append(s.SentinelNodes(), s.Nodes()...),
			rueidis.ClientOption{InitAddress: s.Sentinels(), Sentinel: rueidis.SentinelOption{MasterSet: s.Name()}},
		},
		"InACluster": {clusterURL(c), c.Nodes(), rueidis.ClientOption{InitAddress: c.Addrs()}},
	} {
		for way, direction := range directions {
			t.Run(name+"/"+way, func(t *testing.T) {
				t.Parallel()
				for try := 0; ; try++ {
					late := cutOffHolder(t, to, direction, fmt.Sprint(t.Name(), " ", try))
					if late == "" {
						return
					}
					if try == 3 { // this process may have stood still between two instants
						t.Fatalf("four times in a row, the last time: %s", late)
					}
					t.Logf("once more: %s", late)
				}
			})
		}
	}
}

// cutOffHolder returns what the holder behind the cables had not been told when the next was in.
func cutOffHolder(t *testing.T, to deployment, direction servers.Direction, name string) (late string) {
	all := newCables(t, to.nodes)
	to.option.DialCtxFn, to.option.DisableCache = all.dial, true
	client, err := rueidis.NewClient(to.option)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	d, err := redislock.Start(patient(t), client, &redislock.Options{Check: redislock.CheckNone})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	watch := locktest.NewNews()
	holder, err := interlock.New(d, &interlock.Options{Lease: 600 * time.Millisecond, CloseTimeout: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Close()
	next := openLocks(t, to.url, &interlock.Options{Observer: watch.Observer()})
	defer next.Close()

	held := mustLock(t, holder, name)
	work, lost := held.Context(context.Background()), held.Lost()
	in := make(chan locked, 1)
	ctx := patient(t)
	go func() { // ends with ctx
		l, err := next.Lock(ctx, name)
		if err == nil {
			late = notTold(work, lost)
			if _, stamped := held.Stamp(); stamped || held.Err() == nil {
				err = errors.New("two are in, by their own word")
			}
		}
		in <- locked{l, err}
	}()
	receive(t, "the waiter to be queued", watch.Queued)
	all.cut(direction)
	got := receive(t, "the next to get in", in)
	if got.err != nil {
		t.Fatal(got.err)
	}
	if held.Token() >= got.lease.Token() {
		t.Errorf("token %d is in after %d", got.lease.Token(), held.Token())
	}
	var reason *interlock.LostError
	if !errors.As(held.Err(), &reason) {
		t.Errorf("the holder has lost it by %v", held.Err())
	}
	all.mend() // what was held up arrives now
	mustUnlock(t, got.lease)
	again := holder.Mutex(name, &interlock.LockOptions{Lease: failoverLease}) // which outlasts a busy machine
	if err := again.Do(patient(t), func(context.Context) error { return nil }); err != nil {
		t.Errorf("the holder, when the network is back: %v", err)
	}
	return late
}
