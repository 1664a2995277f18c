package zklock

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servers"
)

// What one user has made is closed to others.
func TestUser_KeepsOthersOut(t *testing.T) {
	n, root := sharedServer(t), freshRoot()
	mine := open(t, []string{n.Addr()}, &Options{Root: root, User: "me", Password: "secret"})
	r := request("lock")
	take(t, mine, r)
	a := newAdmin(t, n.Addr())
	for _, path := range []string{root, root + "/mutex", root + "/mutex/lock", root + "/sessions"} {
		if _, _, err := a.Children(path); !errors.Is(err, zk.ErrNoAuth) {
			t.Errorf("%s is open to others: %v", path, err)
		}
	}
	for _, o := range []*Options{
		{Root: root},
		{Root: root, User: "me", Password: "wrong"},
		{Root: root, User: "you", Password: "secret"},
	} {
		d, err := New(bounded(t), []string{n.Addr()}, o)
		if !errors.Is(err, zk.ErrNoAuth) || strings.Contains(err.Error(), "secret") {
			t.Errorf("user %q: %v, want that it has no rights", o.User, err)
		}
		if err == nil {
			_ = d.Close()
		}
	}
	also := open(t, []string{n.Addr()}, &Options{Root: root, User: "me", Password: "secret"})
	w := queue(t, also, request("lock"))
	give(t, mine, r)
	w.granted(t, "the same user")
	give(t, also, w.r)
}

// The user is shown again to each server that the client connects to, and in each session.
func TestUser_IsShownAgainAfterAReconnection(t *testing.T) {
	t.Parallel()
	n, root := sharedServer(t), freshRoot()
	p := servers.NewProxy(t, n.Addr())
	d := open(t, []string{p.Addr()}, &Options{Root: root, User: "me", Password: "secret", Timeout: faultLease})
	for _, long := range []bool{false, false, true} {
		r := request("lock")
		take(t, d, r)
		give(t, d, r)
		if long {
			p.BlackHole(servers.BothWays)
			<-time.After(faultLease * 3 / 2) // the session is over
		}
		p.Reset()
		p.Pass()
	}
	r := request("lock")
	take(t, d, r)
	give(t, d, r)
}

// A node's ACL that keeps even its maker out is reported, and nothing hangs.
func TestForbiddenLock_IsAnErrorThatSaysSo(t *testing.T) {
	n, root := sharedServer(t), freshRoot()
	a := newAdmin(t, n.Addr())
	d := open(t, []string{n.Addr()}, &Options{Root: root})
	for _, path := range []string{root + "/mutex", root + "/mutex/lock"} {
		acl := zk.WorldACL(zk.PermAll)
		if strings.HasSuffix(path, "/lock") {
			acl = zk.WorldACL(zk.PermRead)
		}
		if _, err := a.Create(path, nil, 0, acl); err != nil {
			t.Fatal(err)
		}
	}
	r := request("lock")
	_, err := d.Acquire(bounded(t), r)
	if !errors.Is(err, driver.ErrUnavailable) || !errors.Is(err, zk.ErrNoAuth) {
		t.Errorf("Acquire says %v", err)
	}
	if said := driver.Refusal(err); said == nil || !strings.Contains(said.Hint, "ACL") ||
		strings.Contains(err.Error(), "did not answer") {
		t.Errorf("Acquire says %v, want a refusal that says what to do", err)
	}
	if err := d.Release(bounded(t), &driver.Release{Key: r.Key, ID: r.ID, Undo: true}); err != nil {
		t.Errorf("the undo says %v", err)
	}
}

func TestTLS_ByURL(t *testing.T) {
	t.Parallel()
	n, root := sharedServer(t), freshRoot()
	addr, ca := secured(t, n.Addr())
	d, err := driver.DefaultMux.Open(bounded(t), "zk://"+addr+root+"?tls=true&ca="+ca, driver.Config{})
	if err != nil {
		t.Fatal(err)
	}
	r := request("lock")
	if _, err := d.Acquire(bounded(t), r); err != nil {
		t.Error(err)
	}
	for _, f := range d.(driver.Diagnoser).Diagnose(bounded(t)) {
		if f.Level == driver.LevelFail {
			t.Errorf("%+v", f)
		}
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	for url, want := range map[string]string{
		"zk://" + addr + root + "?tls=true":     "ca=",
		"zk://" + n.Addr() + root + "?tls=true": "TLS",
	} {
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		_, err := driver.DefaultMux.Open(ctx, url, driver.Config{})
		cancel()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", url, err, want)
		}
	}
}

// secured stands before a server and speaks TLS. It returns its address and the file of its authority.
func secured(t testing.TB, target string) (addr, ca string) {
	t.Helper()
	// The test server of net/http has a certificate for loopback.
	web := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(web.Close)
	cert := web.TLS.Certificates[0]
	ca = filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, encodePEM(web.Certificate()), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		Certificates: []tls.Certificate{cert},
		MinVersion:   tls.VersionTLS12,
	})
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	t.Cleanup(func() {
		_ = l.Close()
		all.Wait()
	})
	all.Go(func() { // ends when the listener is closed
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { join(conn, target) })
		}
	})
	return l.Addr().String(), ca
}

// join forwards both ways until one end has ended.
func join(client net.Conn, target string) {
	defer client.Close()
	server, err := net.Dial("tcp", target)
	if err != nil {
		return
	}
	defer server.Close()
	var both sync.WaitGroup
	both.Go(func() {
		_, _ = io.Copy(server, client)
		_ = server.Close()
	})
	both.Go(func() {
		_, _ = io.Copy(client, server)
		_ = client.Close()
	})
	both.Wait()
}

func encodePEM(c *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})
}
