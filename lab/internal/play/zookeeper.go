package play

import (
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/interlock-go/interlock/internal/servers"
)

// ZooKeeper is a server of a play.
type ZooKeeper struct {
	*servers.ZooKeeperNode
	p *Play
}

// ZooKeeper starts a server.
func (p *Play) ZooKeeper() *ZooKeeper {
	p.Helper()
	return &ZooKeeper{ZooKeeperNode: servers.ZooKeeperServer(p, nil), p: p}
}

// URL returns the server as interlock opens it.
func (z *ZooKeeper) URL() string { return "zk://" + z.Addr() }

// silent is a logger that says nothing: the library's words would stand between those of the story.
type silent struct{}

func (silent) Printf(string, ...any) {}

// Session opens a session, as one client has it.
func (z *ZooKeeper) Session() *zk.Conn {
	z.p.Helper()
	conn, events, err := zk.Connect([]string{z.Addr()}, patience, zk.WithLogger(silent{}))
	if err != nil {
		z.p.Fatal(err)
	}
	z.p.Cleanup(conn.Close)
	for end := time.After(patience); ; {
		select {
		case e := <-events:
			if e.State == zk.StateHasSession {
				return conn
			}
		case <-z.p.Context().Done():
			z.p.Fatal(z.p.Context().Err())
		case <-end:
			z.p.Fatal("there is no session with ZooKeeper")
		}
	}
}

// Make makes a node that stays.
func (z *ZooKeeper) Make(path string) {
	z.p.Helper()
	if _, err := z.Session().Create(path, nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
		z.p.Fatal(err)
	}
}

// metrics returns the sum of some of the server's numbers.
func (z *ZooKeeper) metrics(names ...string) int {
	z.p.Helper()
	text, err := z.Ask(z.p.Context(), "mntr")
	if err != nil {
		z.p.Fatal(err)
	}
	sum := 0
	for line := range strings.Lines(text) {
		for _, name := range names {
			if value, ok := strings.CutPrefix(strings.TrimSpace(line), name+"\t"); ok {
				sum += number(value)
			}
		}
	}
	return sum
}

// Woken returns how many watches have fired since the server began, whatever they were for.
func (z *ZooKeeper) Woken() int {
	z.p.Helper()
	return z.metrics("zk_sum_node_created_watch_count", "zk_sum_node_deleted_watch_count",
		"zk_sum_node_children_watch_count", "zk_sum_node_changed_watch_count")
}

// AwaitWatches returns when there are n watches.
func (z *ZooKeeper) AwaitWatches(n int) {
	z.p.Helper()
	have := -1
	if !z.p.until(func() bool {
		have = z.metrics("zk_watch_count")
		return have == n
	}) {
		z.p.Fatalf("ZooKeeper has %d watches and never had %d", have, n)
	}
}
