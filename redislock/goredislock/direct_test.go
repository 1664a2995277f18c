package goredislock

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servers"
	"github.com/interlock-go/interlock/redislock"
	"github.com/redis/go-redis/v9"
)

// grab takes a lock, for a minute.
func grab(t *testing.T, d *redislock.Driver, name string) error {
	t.Helper()
	_, err := d.Acquire(t.Context(), &driver.Request{
		Key: driver.Key{Kind: driver.KindMutex, Name: name}, ID: rand.Text(), Owner: "o", Lease: time.Minute, Tokens: 1,
	})
	return err
}

// connected returns what a server says of its clients, a line for each of which the text is part.
func connected(t *testing.T, addr, text string) (lines []string) {
	t.Helper()
	for line := range strings.Lines(admin(t, addr, "CLIENT", "LIST").(string)) {
		if strings.Contains(line, text) {
			lines = append(lines, line)
		}
	}
	return lines
}

// mustNew opens a driver, which is closed with the test.
func mustNew(t *testing.T, client redis.UniversalClient) *redislock.Driver {
	t.Helper()
	d, err := New(client, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close(); _ = client.Close() })
	return d
}

func TestNew_ConnectsAsTheClientDoes(t *testing.T) {
	s := servers.RedisServer(t, &servers.RedisOptions{Users: []string{"bob on >first >second ~* &* +@all"}})
	var dialled atomic.Int64
	password := atomic.Value{}
	password.Store("first")
	d := mustNew(t, redis.NewClient(&redis.Options{
		Addr: "a name that only the dialer knows", DB: 3, ClientName: "shop",
		Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			if addr != "a name that only the dialer knows" {
				return nil, errors.New("not the client's address: " + addr)
			}
			dialled.Add(1)
			return new(net.Dialer).DialContext(ctx, network, s.Addr())
		},
		CredentialsProviderContext: func(context.Context) (string, string, error) {
			return "bob", password.Load().(string), nil
		},
	}))
	if err := grab(t, d, "a"); err != nil {
		t.Fatal(err)
	}
	if got := connected(t, s.Addr(), "user=bob"); len(got) == 0 ||
		len(connected(t, s.Addr(), "name=shop")) != len(got) {
		t.Errorf("the server has %q, want connections of bob by the name of shop", got)
	}
	if n := admin(t, s.Addr(), "INFO", "keyspace").(string); !strings.Contains(n, "db3:") ||
		strings.Contains(n, "db0:") {
		t.Errorf("want the lock in database 3, and none in 0: %s", n)
	}

	// User and password are asked for anew when a connection is.
	password.Store("second")
	admin(t, s.Addr(), "ACL", "SETUSER", "bob", "<first")
	before := dialled.Load()
	admin(t, s.Addr(), "CLIENT", "KILL", "USER", "bob")
	eventually(t, "a lock over a new connection", func() bool { return grab(t, d, "b") == nil })
	if dialled.Load() == before {
		t.Error("the client's dialer was not asked for the new connection")
	}
}

func TestNew_OverASocketOfTheSystem_NeedsNoNetwork(t *testing.T) {
	path := t.TempDir() + "/s"
	addr := servers.Redis(t)
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go passOn(listener, addr) // ends with the listener
	d := mustNew(t, redis.NewClient(&redis.Options{Network: "unix", Addr: path}))
	if err := grab(t, d, t.Name()); err != nil {
		t.Error(err)
	}
}

// passOn connects each connection with a server, until the listener is closed.
func passOn(from net.Listener, to string) {
	for {
		a, err := from.Accept()
		if err != nil {
			return
		}
		b, err := net.Dial("tcp", to)
		if err != nil {
			_ = a.Close()
			continue
		}
		for _, pair := range [][2]net.Conn{{a, b}, {b, a}} {
			go func() { // ends with either connection
				_, _ = io.Copy(pair[0], pair[1])
				_, _ = pair[0].Close(), pair[1].Close()
			}()
		}
	}
}

// wrapped is a connection of which only its user knows what it does.
type wrapped struct{ net.Conn }

func TestNew_WithADialerThatWrapsConnections_LocksOverThese(t *testing.T) {
	addr := servers.Redis(t)
	var open atomic.Int64
	d := mustNew(t,
		redis.NewClient(&redis.Options{
			Addr: addr,
			Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
				c, err := new(net.Dialer).DialContext(ctx, network, addr)
				open.Add(1)
				return &wrapped{c}, err
			},
		}))
	if err := grab(t, d, t.Name()); err != nil || open.Load() == 0 {
		t.Errorf("%v, over %d connections", err, open.Load())
	}
}

// refusing is a limiter that lets nothing through once it is closed.
type refusing struct{ closed atomic.Bool }

var errLimit = errors.New("the limit is reached")

func (l *refusing) Allow() error {
	if l.closed.Load() {
		return errLimit
	}
	return nil
}

func (l *refusing) ReportResult(error) {}

// What New cannot do over connections of its own it leaves to the client.
func TestNew_OverAClientThatDoesMoreThanConnect_UsesTheClient(t *testing.T) {
	addr := servers.Redis(t)
	limit := new(refusing)
	for name, o := range map[string]*redis.Options{
		"Limiter":   {Addr: addr, Limiter: limit},
		"OnConnect": {Addr: addr, OnConnect: func(context.Context, *redis.Conn) error { return nil }},
		"RESP2":     {Addr: addr, Protocol: 2},
	} {
		client := redis.NewClient(o)
		d := mustNew(t, client)
		if err := grab(t, d, t.Name()+name); err != nil {
			t.Fatal(err)
		}
		if name == "Limiter" {
			limit.closed.Store(true)
		} else if err := client.Close(); err != nil {
			t.Fatal(err)
		}
		if err := grab(t, d, t.Name()+name+" again"); !errors.Is(err, errLimit) && !errors.Is(err, redis.ErrClosed) {
			t.Errorf("%s: %v, want what the client says", name, err)
		}
	}
}

func TestNew_OverAPlainClient_NeedsItNoMore(t *testing.T) {
	client := solo(servers.Redis(t))
	d := mustNew(t, client)
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}
	if err := grab(t, d, t.Name()); err != nil {
		t.Error(err)
	}
}
