package etcdlock

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlock-go/interlock/internal/servers"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
)

// loggingIn returns a client that is kept logged in, and counts how often it logs in.
func (s *stage) loggingIn(user, password string) (*clientv3.Client, *atomic.Int64) {
	s.t.Helper()
	n := new(atomic.Int64)
	count := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker,
		opts ...grpc.CallOption,
	) error {
		if method == authenticate {
			n.Add(1)
		}
		return invoke(ctx, method, req, reply, cc, opts...)
	}
	client, err := clientv3.New(KeepLoggedIn(clientv3.Config{
		Endpoints: []string{s.node.Addr()}, Username: user, Password: password, Logger: zap.NewNop(),
		DialOptions: []grpc.DialOption{grpc.WithChainUnaryInterceptor(count)},
	}))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = client.Close() })
	return client, n
}

// A client of the program goes on after a restart, and logs in once, however many requests find that its token is not
// known.
func TestKeepLoggedIn_OverARestart(t *testing.T) {
	t.Parallel()
	s := &stage{t: t, node: servers.EtcdServer(t, &servers.EtcdOptions{Password: "s3cret"})}
	client, logins := s.loggingIn("root", "s3cret")
	d, err := New(s.ctx(), client, &Options{Session: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	held := s.ask("lock")
	s.take(held, d)
	w := s.waits(d, s.ask("lock"))
	if n := logins.Load(); n != 1 {
		t.Errorf("it has logged in %d times", n)
	}
	s.forgets()
	var all sync.WaitGroup
	for range 20 {
		r := s.ask("other")
		r.Name += r.ID
		all.Go(func() { // ends with the acquire
			if _, err := d.Acquire(s.ctx(), r); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if err := s.release(d, held); err != nil {
		t.Fatal(err)
	}
	s.ends(w, rulesPatience)
	if w.err != nil {
		t.Fatal(w.err)
	}
	if n := logins.Load(); n != 2 {
		t.Errorf("it has logged in %d times, want once more after the restart", n)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

// A server may get its users later. A password that is wrong is said at once, and not tried again and again.
func TestKeepLoggedIn_WhenUsersComeLater(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	client, logins := s.loggingIn("root", "s3cret")
	stranger, tries := s.loggingIn("root", "wr0ng")
	for _, c := range []*clientv3.Client{client, stranger} {
		if _, err := c.Put(s.ctx(), "key", "value"); err != nil {
			t.Fatalf("without users: %v", err)
		}
	}
	for _, step := range []func() error{
		func() error { _, err := client.UserAdd(s.ctx(), "root", "s3cret"); return err },
		func() error { _, err := client.RoleAdd(s.ctx(), "root"); return err },
		func() error { _, err := client.UserGrantRole(s.ctx(), "root", "root"); return err },
		func() error { _, err := client.AuthEnable(s.ctx()); return err },
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := client.Put(s.ctx(), "key", "value"); err != nil {
		t.Errorf("with users: %v", err)
	}
	if _, err := stranger.Put(s.ctx(), "key", "value"); !errors.Is(err, rpctypes.ErrAuthFailed) {
		t.Errorf("with a wrong password: %v", err)
	}
	if a, b := logins.Load(), tries.Load(); a != 2 || b != 2 {
		t.Errorf("%d and %d logins", a, b)
	}
}

// A stream on which a watch is refused showed a token that is of no use: the next one shows another, although no
// request has asked for it.
func TestKeepLoggedIn_AStreamThatIsRefused_HasTheNextShowAnotherToken(t *testing.T) {
	t.Parallel()
	s := &stage{t: t, node: servers.EtcdServer(t, &servers.EtcdOptions{Password: "s3cret"})}
	client, _ := s.loggingIn("root", "s3cret")
	if _, err := client.Put(s.ctx(), "key", "value"); err != nil {
		t.Fatal(err)
	}
	s.forgets()
	watched := func() (said *pb.WatchResponse) {
		s.soon("an answer to a watch", func() bool {
			ctx, cancel := context.WithCancel(s.ctx())
			defer cancel()
			stream, err := pb.NewWatchClient(client.ActiveConnection()).Watch(ctx)
			if err != nil {
				return false
			}
			if err := stream.Send((&watch{id: 1, key: "key"}).request()); err != nil {
				return false
			}
			said, err = stream.Recv()
			return err == nil
		})
		return said
	}
	if first := watched(); !refusesWatch(first) {
		t.Fatalf("the server knows the token still: %v", first)
	}
	if second := watched(); refusesWatch(second) {
		t.Errorf("with another token it is refused as well: %v", second)
	}
}

// forgets restarts the server, which does not know the tokens any more then that it has given out: what is on its disk
// by now is not done again after the restart, among it the logins.
func (s *stage) forgets() {
	s.t.Helper()
	if _, err := s.node.Do(s.ctx(), "maintenance/hash", map[string]any{}); err != nil {
		s.t.Fatal(err)
	}
	s.node.Restart()
}
