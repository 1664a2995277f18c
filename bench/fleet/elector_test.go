package fleet

import (
	"context"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/adapters/resourcelock"
	_ "github.com/interlock-go/interlock/etcdlock"  // etcd://
	_ "github.com/interlock-go/interlock/redislock" // redis://
	"k8s.io/client-go/tools/leaderelection"
)

// term is LeaseDuration: client-go wants at least a second, and the servers answer slowly beside other work.
const term = 4 * time.Second

// elector is one of client-go, with a client of its own as in a process of its own.
type elector struct {
	lock                    *resourcelock.Lock
	resign                  context.CancelFunc
	started, stopped, ended chan struct{}
}

func opened(t *testing.T, url string) *interlock.Client {
	t.Helper()
	locks, err := interlock.Open(t.Context(), url, &interlock.Options{Lease: 2 * term}) // etcd has sessions
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = locks.Close() })
	return locks
}

// electorOn starts an elector.
func electorOn(t *testing.T, url, name string) *elector {
	t.Helper()
	lock, err := resourcelock.New(opened(t, url), "controller", name)
	if err != nil {
		t.Fatal(err)
	}
	e := &elector{
		lock: lock, started: make(chan struct{}, 1), stopped: make(chan struct{}, 1), ended: make(chan struct{}),
	}
	ctx, resign := lock.Context(t.Context())
	e.resign = resign
	run, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: lock, LeaseDuration: term, RenewDeadline: term / 2, RetryPeriod: 100 * time.Millisecond,
		ReleaseOnCancel: true, Name: name,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { e.started <- struct{}{} },
			OnStoppedLeading: func() { e.stopped <- struct{}{} },
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	go func() { // ends with ctx
		defer close(e.ended)
		run.Run(ctx)
	}()
	t.Cleanup(func() {
		resign()
		<-e.ended
	})
	return e
}

func hears(t *testing.T, what string, from <-chan struct{}) {
	t.Helper()
	select {
	case <-from:
	case <-time.After(time.Minute):
		t.Fatalf("no %s within a minute", what)
	}
}

// Electors of Kubernetes' client library follow each other on servers: whose lead is taken stops, and who resigns is
// followed, by a larger token.
func TestElectors_OnServers_FollowEachOther(t *testing.T) {
	for name, url := range map[string]func(t *testing.T) string{
		"redis": func(t *testing.T) string { return "redis://" + servesRedis(t) },
		"etcd":  func(t *testing.T) string { return "etcd://" + servesEtcd(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := url(t)
			first := electorOn(t, url, "first")
			hears(t, "leader", first.started)
			stamp, _ := first.lock.Stamp()
			second := electorOn(t, url, "second")
			admin := opened(t, url)
			if err := admin.Break(t.Context(), interlock.KindElection, "controller", stamp.Token); err != nil {
				t.Fatal(err)
			}
			hears(t, "end of the broken lead", first.stopped)
			hears(t, "next leader", second.started)
			next, _ := second.lock.Stamp()
			third := electorOn(t, url, "third")
			second.resign()
			hears(t, "leader after one that resigned", third.started)
			if last, ok := third.lock.Stamp(); !ok || next.Token <= stamp.Token || last.Token <= next.Token {
				t.Errorf("the tokens are %d, %d and %d", stamp.Token, next.Token, last.Token)
			}
		})
	}
}
