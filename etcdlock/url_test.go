package etcdlock

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servers"
)

func TestURL_IsReadAsTheDocumentationSays(t *testing.T) {
	u, err := driver.ParseURL("etcd://me:p%2Fw@h1,h2:1234,[::1]?prefix=app/&request-timeout=2s&tls=true")
	if err != nil {
		t.Fatal(err)
	}
	config, opts, err := fromURL(u, driver.Config{Lease: 7 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(config.Endpoints, " "); got != "h1:2379 h2:1234 [::1]:2379" {
		t.Errorf("the endpoints are %s", got)
	}
	if config.Username != "me" || config.Password != "p/w" || config.TLS == nil {
		t.Errorf("user %q, password %q, TLS %v", config.Username, config.Password, config.TLS)
	}
	if opts.Prefix != "app/" || opts.RequestTimeout != 2*time.Second || opts.Session != 7*time.Second {
		t.Errorf("the options are %+v", *opts)
	}
}

func TestURL_FaultsAreExplained_WithoutThePassword(t *testing.T) {
	for raw, says := range map[string]string{
		"etcd://":      "names no server",
		"etcd://h/app": "prefix=app/",
		"etcd://h?ttl=3s": `unknown query key "ttl": ` +
			`this engine takes ca, cert, key, prefix, request-timeout, tls`,
		"etcd://h?tls=perhaps":                      "true or false",
		"etcd://h?request-timeout=1":                "duration",
		"etcd://h?request-timeout=1ms":              "at least 10 ms",
		"etcd://h?ca=/nowhere":                      "write tls=true",
		"etcd://h?tls=true&ca=/nowhere":             "authority's file",
		"etcd://h?tls=true&cert=/x":                 "go together",
		"etcd://me:hunter2@h?tls=true&cert=/x&key=": "go together",
		"etcd://h:port":                             "not a number",
		"etcd://::1":                                "in brackets",
		"etcd://:2379":                              "a host is empty",
		"etcd:///x":                                 "names no server",
		"etcd://me@h":                               "no password",
		"etcd://:hunter2@h":                         "no user",
		"etcd://me:a?hunter2@h":                     "write a ? inside a user or password as %3F",
		"etcd://me:a/hunter2@h":                     "write a / inside a user or password as %2F",
	} {
		_, err := driver.DefaultMux.Open(t.Context(), raw, driver.Config{})
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: the error is %v, want one that says %q", raw, err, says)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the error shows the password: %v", raw, err)
		}
	}
}

// wantOpenError wants a URL to be refused with an error that says so, without its password.
func wantOpenError(t *testing.T, raw, says string, open func(raw string) (driver.Driver, error)) {
	t.Helper()
	_, err := open(raw)
	for range 2 { // what is wrong is looked for within a second, in which the machine may stand still
		if err != nil && !strings.Contains(err.Error(), says) {
			t.Logf("%s: once more, after %v", raw, err)
			_, err = open(raw)
		}
	}
	if err == nil || !strings.Contains(err.Error(), says) || !errors.Is(err, driver.ErrUnavailable) {
		t.Errorf("%s: the error is %v, want one that says %q", raw, err, says)
	} else if strings.Contains(err.Error(), "s3cret") || strings.Contains(err.Error(), "wr0ng") {
		t.Errorf("%s: the error shows the password: %v", raw, err)
	}
	if refused := strings.Contains(says, "password"); refused != (driver.Refusal(err) != nil) {
		t.Errorf("%s: %v is a refusal: %v", raw, err, !refused)
	}
}

func TestURL_UsersAndTLS(t *testing.T) {
	t.Parallel()
	s := servers.EtcdServer(t, &servers.EtcdOptions{Password: "s3cret", TLS: true})
	ca, _, _ := s.Files()
	strict := servers.EtcdServer(t, &servers.EtcdOptions{TLS: true, ClientCerts: true})
	strictCA, cert, key := strict.Files()
	const session = 8 * time.Second
	open := func(raw string) (driver.Driver, error) {
		ctx, cancel := context.WithTimeout(context.Background(), rulesPatience)
		defer cancel()
		return driver.DefaultMux.Open(ctx, raw, driver.Config{Lease: session})
	}
	for raw, says := range map[string]string{
		"etcd://" + s.Addr() + "?request-timeout=500ms":                       "write tls=true",
		"etcd://" + s.Addr() + "?request-timeout=500ms&tls=true":              "ca=/path/ca.crt",
		"etcd://" + s.Addr() + "?tls=true&ca=" + ca:                           "etcd://user:password@host",
		"etcd://root:wr0ng@" + s.Addr() + "?tls=true&ca=" + ca:                "user or password is wrong",
		"etcd://127.0.0.1:1?request-timeout=10m":                              "is the address right",
		"etcd://127.0.0.1:1,127.0.0.1:2?request-timeout=10m":                  "is the address right",
		"etcd://root:s3cret@" + s.Addr() + "?request-timeout=500ms&prefix=a/": "write tls=true",

		"etcd://" + strict.Addr() + "?request-timeout=500ms&tls=true&ca=" + strictCA: "cert=/path/client.crt and key=",
	} {
		wantOpenError(t, raw, says, open)
	}
	short, cancel := context.WithTimeout(context.Background(), 4*time.Second)
	defer cancel()
	_, err := driver.DefaultMux.Open(short, "etcd://"+s.Addr()+"?tls=true", driver.Config{})
	if err == nil || !strings.Contains(err.Error(), "ca=/path/ca.crt") {
		t.Errorf("with little time the error is %v, want its reason", err)
	}
	if d, err := open("etcd://" + strict.Addr() + "?tls=true&ca=" + strictCA + "&cert=" + cert + "&key=" +
		key); err != nil {
		t.Error(err)
	} else {
		_ = d.Close()
	}
	d, err := open("etcd://root:s3cret@" + s.Addr() + "?tls=true&ca=" + ca)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	st := &stage{t: t, node: s}
	held := st.ask("lock")
	g := st.take(held, d.(*Driver))
	w := st.waits(d.(*Driver), st.ask("lock"))
	<-time.After(session * 3 / 2) // over several signs of life
	if since := time.Since(g.Session.Confirmed()); since > session {
		t.Errorf("the session was confirmed %v ago", since)
	}
	if err := st.release(d.(*Driver), held); err != nil {
		t.Error(err)
	}
	st.ends(w, rulesPatience)
	if w.err != nil {
		t.Error(w.err)
	}
}

func TestNew_LeavesTheClientOpen_AndBoundsItsTime(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	owner := s.opens(s.node.Addr(), time.Minute)
	d, err := New(s.ctx(), owner.client, &Options{Session: 3 * time.Second, Prefix: "other/"})
	if err != nil {
		t.Fatal(err)
	}
	if got := d.Traits().Timeout; got != 3*time.Second {
		t.Errorf("the session's timeout is %v", got)
	}
	s.take(s.ask("lock"), d)
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	s.take(s.ask("lock"), owner) // another prefix, and the client is open
	s.node.Stop()
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	ended := make(chan time.Time, 1)
	context.AfterFunc(ctx, func() { ended <- time.Now() }) // is late as well if the machine stands still
	_, err = New(ctx, owner.client, nil)
	returned := time.Now()
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("New at a server that hangs says %v", err)
	}
	if late := returned.Sub(<-ended); late > 1800*time.Millisecond {
		t.Errorf("New returned %v after its context had ended", late)
	}
	s.node.Cont()
}

func TestNew_WithoutAClient_SaysSo(t *testing.T) {
	if _, err := New(t.Context(), nil, nil); err == nil || !strings.Contains(err.Error(), "etcd: there is no client") {
		t.Errorf("got %v", err)
	}
}
