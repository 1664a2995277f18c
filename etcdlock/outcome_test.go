package etcdlock

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/interlock-go/interlock/internal/servers"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestOutcome_OfWhatTheClientSays(t *testing.T) {
	for _, row := range []struct {
		err  error
		want outcome
	}{
		{rpctypes.ErrGRPCPermissionDenied, refused},
		{rpctypes.ErrPermissionDenied, refused},
		{rpctypes.ErrAuthFailed, refused},
		{rpctypes.ErrInvalidAuthToken, refused},
		{rpctypes.ErrUserEmpty, refused},
		{rpctypes.ErrAuthOldRevision, refused},
		{rpctypes.ErrNoSpace, refused},
		{rpctypes.ErrRequestTooLarge, refused},
		{rpctypes.ErrLeaseNotFound, refused},
		{rpctypes.ErrCorrupt, refused},
		{rpctypes.ErrNotCapable, refused},
		{fmt.Errorf("wrapped: %w", rpctypes.ErrPermissionDenied), refused},
		{status.Error(codes.ResourceExhausted, "trying to send message larger than max (3 vs. 2)"), refused},
		{status.Error(codes.Unimplemented, "unknown service"), refused},

		{rpctypes.ErrTooManyRequests, notSent},
		{status.Error(codes.Unavailable, `connection error: desc = "transport: Error while dialing: `+
			`dial tcp 127.0.0.1:1: connect: connection refused"`), notSent},
		{
			status.Error(codes.Unavailable,
				`connection error: desc = "transport: authentication handshake failed: EOF"`),
			notSent,
		},
		{status.Error(codes.Unavailable, `connection error: desc = "error reading server preface: EOF"`), notSent},
		{rpctypes.Error(status.Error(codes.Unavailable,
			"etcdclient: no available endpoints: there is no address available")), notSent},

		{status.Error(codes.Unavailable, `error reading from server: EOF`), unknown},
		{status.Error(codes.Unavailable, "transport is closing"), unknown},
		{rpctypes.ErrTimeout, unknown},
		{rpctypes.ErrTimeoutDueToLeaderFail, unknown},
		{rpctypes.ErrLeaderChanged, unknown},
		{rpctypes.ErrStopped, unknown},
		{rpctypes.ErrNoLeader, unknown},
		{status.Error(codes.Unknown, "raft proposal dropped"), unknown},
		{status.Error(codes.DeadlineExceeded, "latest balancer error: connection error: desc = \"transport: Error "+
			"while dialing\""), notSent},

		{status.Error(codes.DeadlineExceeded, "context deadline exceeded"), unknown},
		{status.Error(codes.Canceled, "context canceled"), unknown},
		{context.DeadlineExceeded, unknown},
		{context.Canceled, unknown},
		{errors.New("what nobody has heard of"), unknown},
	} {
		if got := outcomeOf(row.err); got != row.want {
			t.Errorf("%v: the outcome is %d, want %d", row.err, got, row.want)
		}
	}
}

// The texts of grpc are its own, so what it says of servers that are not there is tried.
func TestOutcome_OfConnectionsThatCannotBeMade_IsNotSent(t *testing.T) {
	t.Parallel()
	plain := servers.EtcdServer(t, nil)
	secret := servers.EtcdServer(t, &servers.EtcdOptions{TLS: true})
	for name, config := range map[string]clientv3.Config{
		"nobody listens": {Endpoints: []string{"127.0.0.1:1"}},
		"speaks no TLS":  {Endpoints: []string{plain.Addr()}, TLS: secret.TLS()},
		"speaks TLS":     {Endpoints: []string{secret.Addr()}},
		"is of some authority": {
			Endpoints: []string{secret.Addr()},
			TLS:       servers.EtcdServer(t, &servers.EtcdOptions{TLS: true}).TLS(),
		},
	} {
		config.Logger, config.MaxUnaryRetries = zap.NewNop(), 1
		client, err := connect(t.Context(), &config)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		once, sent := watchingUnsent(ctx)
		_, err = client.Put(once, "key", "value")
		if became, why := sent.became(err); became != notSent || errors.Is(why, context.DeadlineExceeded) {
			t.Errorf("a server that %s: the outcome is %d of %v, because of %v", name, became, err, why)
		} else {
			t.Logf("a server that %s: %v", name, why)
		}
		cancel()
		_ = client.Close()
	}
}

// A client without rights, with a wrong password or on a server that is full is told so at once, and not that nobody
// has answered.
func TestOutcome_OfWhatServersRefuse_IsRefused(t *testing.T) {
	t.Parallel()
	s := &stage{t: t, node: servers.EtcdServer(t, &servers.EtcdOptions{
		Password: "s3cret",
		Args:     []string{"--quota-backend-bytes", "100000"},
	})}
	for path, body := range map[string]map[string]any{"auth/user/add": {"name": "app", "password": "pw"}} {
		if _, err := s.node.Do(s.ctx(), path, body); err != nil {
			t.Fatal(err)
		}
	}
	begin := time.Now()
	for user, password := range map[string]string{"app": "pw", "root": "wr0ng"} {
		client, _ := s.loggingIn(user, password)
		if _, err := client.Put(s.ctx(), "key", "value"); outcomeOf(err) != refused {
			t.Errorf("%s: the outcome is %d of %v", user, outcomeOf(err), err)
		}
	}
	root, _ := s.loggingIn("root", "s3cret")
	var err error
	// The server compares the quota with the size of its file, which grows only each 100 ms, when it writes a batch. So
	// the time is bounded and not the number: a quick machine puts a hundred keys before that.
	for i, end := 0, time.Now().Add(rulesPatience); err == nil && time.Now().Before(end); i++ {
		_, err = root.Put(s.ctx(), fmt.Sprint("key", i), string(make([]byte, 10000)))
	}
	if outcomeOf(err) != refused || !isFull(err) {
		t.Errorf("a server that is full: the outcome is %d of %v", outcomeOf(err), err)
	}
	t.Logf("all that in %v", time.Since(begin))
}
