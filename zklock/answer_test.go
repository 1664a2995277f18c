package zklock

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servers"
)

func TestOutcome_OfWhatTheClientSays(t *testing.T) {
	const refused, unknown = true, false
	for _, row := range []struct {
		err  error
		want bool
	}{
		{zk.ErrNoAuth, refused},
		{zk.ErrAuthFailed, refused},
		{zk.ErrInvalidACL, refused},
		{zk.ErrNoNode, refused},
		{zk.ErrNodeExists, refused},
		{zk.ErrBadVersion, refused},
		{fmt.Errorf("wrapped: %w", zk.ErrNoAuth), refused},
		{unreached{zk.ErrNoAuth}, refused}, // why there is no session
		{errors.New("unknown error: -6"), refused},
		{errors.New("unknown error: -124"), refused},
		{errors.New("unknown error: -125"), refused},

		{errors.New("unknown error: -127"), unknown},
		{unreached{io.EOF}, unknown},
		{&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, unknown},
		{&net.OpError{Op: "read", Err: syscall.ECONNRESET}, unknown},
		{errNoAnswer, unknown},
		{errOver, unknown},
		{zk.ErrConnectionClosed, unknown},
		{zk.ErrSessionExpired, unknown},
		{zk.ErrClosing, unknown},
		{io.EOF, unknown},
		{context.DeadlineExceeded, unknown},
		{context.Canceled, unknown},
		{errors.New("unknown error: -4"), unknown},
		{errors.New("what nobody has heard of"), unknown},
	} {
		if got := isRefusal(row.err); got != row.want {
			t.Errorf("%v counts as a refusal: %v, want %v", row.err, got, row.want)
		}
	}
}

// A server that is not there any more is told as one that nothing was sent to, once it has been looked for.
func TestOutcome_OfAServerThatHasGone_IsNotSent(t *testing.T) {
	t.Parallel()
	p := servers.NewProxy(t, sharedServer(t).Addr())
	d := open(t, []string{p.Addr()}, &Options{Root: freshRoot(), Timeout: 20 * time.Second})
	p.Refuse()
	p.Reset()
	d.mu.Lock()
	s := d.session
	d.mu.Unlock()
	soon(t, "the loss of the connection", func() bool { return s.line.failure() != nil })
	_, err := d.Acquire(bounded(t), request("lock"))
	var away *driver.UnavailableError
	if !errors.As(err, &away) || !away.NotSent {
		t.Errorf("Acquire says %#v", err)
	}
	p.Pass()
}

// Only a request that has left nothing earlier counts as not sent, and a server's refusal counts before that.
func TestClassed_OfARequestWithoutAServer(t *testing.T) {
	for _, row := range []struct {
		err     error
		notSent bool
	}{
		{unreached{io.EOF}, true},
		{maybeSent(unreached{io.EOF}), false},
		{maybeSent(errNoAnswer), false},
		{errNoAnswer, false},
	} {
		var away *driver.UnavailableError
		if err := classed("lock", "name", row.err); !errors.As(err, &away) || away.NotSent != row.notSent {
			t.Errorf("%v is told as %#v, want NotSent %v", row.err, err, row.notSent)
		}
	}
	var no *driver.RefusedError
	if err := classed("lock", "name", unreached{zk.ErrNoAuth}); !errors.As(err, &no) {
		t.Errorf("a server that refuses us is told as %v", err)
	}
}

// A quota that is used up is a refusal. The library has no name for it, so it was taken for a broken connection, and
// asked again and again.
func TestAcquire_BeyondAQuota_IsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	n := servers.ZooKeeperServer(t,
		&servers.ZooKeeperOptions{Properties: map[string]string{"zookeeper.enforceQuota": "true"}})
	a := newAdmin(t, n.Addr())
	d := open(t, []string{n.Addr()}, &Options{Root: "/app"})
	r := request("lock")
	take(t, d, r)
	give(t, d, r)
	limits := "count=1,bytes=-1=;byteHardLimit=-1;countHardLimit=1"
	for _, node := range []struct{ path, data string }{
		{"/zookeeper/quota/app", ""},
		{"/zookeeper/quota/app/zookeeper_limits", limits},
		{"/zookeeper/quota/app/zookeeper_stats", "count=9,bytes=9"},
	} {
		if _, err := a.Create(node.path, []byte(node.data), 0, zk.WorldACL(zk.PermAll)); err != nil {
			t.Fatal(node.path, err)
		}
	}
	d.mu.Lock()
	s := d.session
	d.mu.Unlock()
	ctx, cancel := context.WithTimeout(bounded(t), patience/2)
	defer cancel()
	_, err := d.Acquire(ctx, request("lock"))
	if !isRefusal(err) || ctx.Err() != nil {
		t.Errorf("Acquire says %v (%v)", err, ctx.Err())
	}
	d.mu.Lock()
	turns := s.turn
	d.mu.Unlock()
	if turns != 1 {
		t.Errorf("the session is on its connection %d", turns)
	}
}

// Servers that do not take users by name and password say so, and New does not ask again until its time is over.
func TestNew_AtServersThatTakeNoPasswords_SaysSo(t *testing.T) {
	t.Parallel()
	n := servers.ZooKeeperServer(t, &servers.ZooKeeperOptions{
		Properties: map[string]string{"zookeeper.DigestAuthenticationProvider.enabled": "false"},
	})
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	d, err := New(ctx, []string{n.Addr()}, &Options{User: "user", Password: "password"})
	if err == nil {
		_ = d.Close()
		t.Skip("this server takes them all the same")
	}
	if !errors.Is(err, zk.ErrAuthFailed) && !strings.Contains(err.Error(), "authentication failed") {
		t.Errorf("New says %v", err)
	}
}
