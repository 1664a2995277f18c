package redlock

import (
	"context"
	"errors"
	"testing"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servers"
	"github.com/interlock-go/interlock/redislock"
	"github.com/redis/rueidis"
)

// A Conn whose waiting goroutines read for it reads late if they do not.
func TestGuard_LetsWaitingGoroutinesReadForTheConnection(t *testing.T) {
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{servers.Redis(t)}, DisableCache: true, ForceSingleClient: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	conn := redislock.RueidisConn(client)
	if _, awaits := conn.(redislock.Awaiter); !awaits {
		t.Fatal("the Conn of rueidis does not use waiting goroutines any more; then guard need not either")
	}
	if _, awaits := newGuard(conn, &Options{}, nil, 0).conn().(redislock.Awaiter); !awaits {
		t.Error("behind the guard it does not")
	}
}

func threeNodes(t *testing.T, config map[string]string) (nodes []*servers.RedisNode) {
	for range 3 {
		nodes = append(nodes, servers.RedisServer(t, &servers.RedisOptions{Config: config}))
	}
	return nodes
}

// TestGuard_AfterARestart plays restarts of a majority, of which each node has the mark that it was given at first.
func TestGuard_AfterARestart(t *testing.T) {
	for name, test := range map[string]struct {
		config map[string]string
		votes  bool
	}{
		"with a snapshot of before the hold they do not vote": {map[string]string{"save": "3600 1000000"}, false},
		"with an append-only file they vote, and know the hold": {
			map[string]string{"appendonly": "yes", "appendfsync": "always"}, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			nodes := threeNodes(t, test.config)
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			a := openAt(ctx, t, addrs(nodes))
			defer a.Close()
			for _, n := range nodes {
				if _, err := n.Do(ctx, "SAVE"); err != nil {
					t.Fatal(err)
				}
			}
			s := &stage{fleet: &fleet{t: t, nodes: nodes}, name: "held"}
			if _, err := a.Acquire(ctx, s.ask()); err != nil {
				t.Fatal(err)
			}
			for _, n := range nodes[1:] {
				n.Kill()
				n.Restart()
			}
			b := openAt(ctx, t, addrs(nodes))
			defer b.Close()
			_, err := b.Acquire(ctx, s.try())
			switch {
			case test.votes && !errors.Is(err, driver.ErrHeld):
				t.Errorf("a try of a lock that is held: %v", err)
			case !test.votes && (err == nil || !errors.Is(err, driver.ErrUnavailable)):
				t.Errorf("a try, when two nodes of three have forgotten who holds the lock: %v", err)
			}
			s.name = "free"
			if _, err := b.Acquire(ctx, s.try()); (err == nil) != test.votes {
				t.Errorf("a try of a lock that is free: %v", err)
			}
		})
	}
}

// All nodes rest, and two have no mark; but the third's says that those two have lost it, and
// with it who holds the lock.
func TestGuard_NodesThatCameBackEmpty_AreNotNew_BesideOneWithASnapshot(t *testing.T) {
	t.Parallel()
	nodes := threeNodes(t, map[string]string{"save": "3600 1000000"})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	a := openAt(ctx, t, addrs(nodes))
	defer a.Close()
	if _, err := nodes[0].Do(ctx, "SAVE"); err != nil {
		t.Fatal(err)
	}
	s := &stage{fleet: &fleet{t: t, nodes: nodes}, name: "held"}
	if _, err := a.Acquire(ctx, s.ask()); err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes {
		n.Kill()
		n.Restart()
	}
	b := openAt(ctx, t, addrs(nodes))
	defer b.Close()
	if _, err := b.Acquire(ctx, s.try()); err == nil || !errors.Is(err, driver.ErrUnavailable) {
		t.Errorf("a try, when two nodes are empty and one has the mark of before: %v", err)
	}
}

// droppingConn answers the question about the mark, and tells of a broken connection before the answer is judged.
type droppingConn struct {
	redislock.Conn
	asked int
	then  func()
}

func (c *droppingConn) Call(context.Context, *redislock.Call) redislock.Reply {
	c.asked++
	c.then()
	return redislock.Reply{Text: "blank 5 0123456789abcdef0123 - - -", Link: 1}
}

type ignoringHandler struct{ redislock.Handler }

func (ignoringHandler) Dropped(redislock.Link) {}
func (ignoringHandler) Resumed(redislock.Link) {}

// The answer is of before the connection broke, so the next renewal asks again.
func TestGuard_AConnectionThatBreaksDuringALook_IsAskedAboutAgain(t *testing.T) {
	conn := &droppingConn{}
	c := newPool("a", "b", "c").joins([]string{"a", "b", "c"}, nil)
	g := newGuard(conn, &Options{}, c.sets, 0)
	conn.then = func() { (&guardedListener{g, ignoringHandler{}}).Dropped(1) }
	if err := g.look(t.Context()); !errors.Is(err, errIncomplete) {
		t.Fatal(err)
	}
	conn.then = func() {}
	for range 2 { // once is enough
		if err := g.mayRenew(t.Context()); err != nil || conn.asked != 2 {
			t.Errorf("%v; it was asked %d times", err, conn.asked)
		}
	}
}
