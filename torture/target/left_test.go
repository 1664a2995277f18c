package target

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/enginekit"
	_ "github.com/interlock-go/interlock/etcdlock"
	"github.com/interlock-go/interlock/internal/longrun"
	"github.com/interlock-go/interlock/internal/servers"
	_ "github.com/interlock-go/interlock/mysqllock"
	_ "github.com/interlock-go/interlock/pglock"
	_ "github.com/interlock-go/interlock/redislock"
)

// What was given back leaves nothing, what somebody has left is found, and the servers say which version they are.
func TestLeft_FindsWhatNeverEnds(t *testing.T) {
	for _, c := range []struct {
		engine, product string
		litter          func(t *testing.T, i *Instance)
		left            []string // what it says, without numbers and addresses
	}{
		{"redis", "Redis ", redisLitter, []string{"the key interlock:mutex:", " never ends"}},
		{"redis-sentinel", "Redis ", redisLitter, []string{"the key interlock:mutex:", " never ends"}},
		{"redis-cluster", "Redis ", redisLitter, []string{"the key interlock:mutex:", " never ends"}},
		{"redlock", "Redis ", redisLitter, []string{"the key interlock:mutex:", " never ends"}},
		{"etcd", "etcd ", func(t *testing.T, i *Instance) {
			if _, err := i.Server.(*servers.EtcdNode).Do(t.Context(), "kv/put",
				map[string]any{"key": "eQ==", "value": "eQ=="}); err != nil {
				t.Fatal(err)
			}
		}, []string{`the key "y" has no lease`}},
		{"zookeeper", "ZooKeeper ", func(t *testing.T, i *Instance) {
			makeNode(t, i, "/mutex/x/w-0000000001")
		}, []string{"the node /torture/mutex/x/w-0000000001 holds or waits"}},
		{"postgres", "PostgreSQL ", func(t *testing.T, i *Instance) {
			openSession(t, "pgx", i.Direct(), "SELECT pg_advisory_lock(7)")
		}, []string{"has or wants the advisory lock 0/7", "the session of process "}},
		{"mariadb", "MariaDB ", func(t *testing.T, i *Instance) {
			openSession(t, "mysql", "root@tcp("+i.Addrs[0]+")/"+servers.MariaDBDatabase,
				"SELECT GET_LOCK(CONCAT('il1:', LOWER(HEX(id))), 1) FROM interlock")
		}, []string{"has the lock of the mutex x", "has not ended"}},
	} {
		t.Run(c.engine, func(t *testing.T) {
			t.Parallel()
			i := startFor(t, c.engine)
			useOnce(t, i)
			if left := eventually(t, i); len(left) > 0 {
				t.Errorf("after use: %q", left)
			}
			c.litter(t, i)
			left, err := i.Left(t.Context())
			if text := strings.Join(left, "\n"); err != nil ||
				slices.ContainsFunc(c.left, func(s string) bool { return !strings.Contains(text, s) }) {
				t.Errorf("with litter: %q, %v", left, err)
			}
			if v, err := i.Version(t.Context()); err != nil || !strings.HasPrefix(v, c.product) ||
				len(v) == len(c.product) {
				t.Errorf("the version is %q, %v", v, err)
			}
		})
	}
}

// A session that goes on is found with what it holds.
func TestLeft_FindsWhoHasNotLeft(t *testing.T) {
	longrun.Only(t)
	for engine, says := range map[string][]string{
		"zookeeper": {"the node /torture/mutex/x/", " holds or waits", "the node /torture/sessions/", " has not ended"},
		"postgres":  {" has or wants the advisory lock ", "the session of process "},
		"mariadb":   {" has the lock of the mutex x", " has not ended"},
	} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			i := startFor(t, engine)
			if _, err := openWith(t, i.Direct(), 2*time.Second).Lock(t.Context(), "x"); err != nil {
				t.Fatal(err)
			}
			left, err := i.Left(t.Context())
			if text := strings.Join(left, "\n"); err != nil ||
				slices.ContainsFunc(says, func(s string) bool { return !strings.Contains(text, s) }) {
				t.Errorf("%q, %v", left, err)
			}
		})
	}
}

func startFor(t *testing.T, engine string) *Instance {
	t.Helper()
	g, err := Find(engine)
	if err != nil {
		t.Fatal(err)
	}
	return g.Start(t, nil)
}

// useOnce takes a lock, gives it back, and leaves.
func useOnce(t *testing.T, i *Instance) {
	t.Helper()
	locks, err := interlock.Open(t.Context(), i.Direct(), &interlock.Options{Lease: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	lock(t, locks, "x")
	if err := locks.Close(); err != nil {
		t.Error(err)
	}
}

// eventually is what is left after a while, or nothing as soon as that is so: a server needs a moment to end a session.
func eventually(t *testing.T, i *Instance) []string {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); ; enginekit.Pause(t.Context(), 10*time.Millisecond) {
		left, err := i.Left(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(left) == 0 || time.Now().After(end) {
			return left
		}
	}
}

// redisLitter leaves a key on one of the servers that take writes, the last of them.
func redisLitter(t *testing.T, i *Instance) {
	t.Helper()
	all := i.stores()
	for n := range 100 { // a node of a Cluster takes some of them
		if _, err := all[len(all)-1].Do(t.Context(), "SET", fmt.Sprint("interlock:mutex:y", n), "1"); err == nil {
			return
		}
	}
	t.Fatal("it takes no key")
}

// makeNode makes a node below the root.
func makeNode(t *testing.T, i *Instance, path string) {
	t.Helper()
	if err := onZooKeeper(t.Context(), i.Addrs, func(c *zk.Conn) error {
		_, err := c.Create(zooRoot+path, nil, 0, zk.WorldACL(zk.PermAll))
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// openSession says something in a session that goes on.
func openSession(t *testing.T, driver, address, statement string) {
	t.Helper()
	db, err := sql.Open(driver, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(1)
	if _, err := db.ExecContext(context.WithoutCancel(t.Context()), statement); err != nil {
		t.Fatal(err)
	}
}
