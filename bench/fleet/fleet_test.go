package fleet

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/internal/childproc"
	"github.com/interlock-go/interlock/internal/servers"
	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"
)

// fleet is who may meet on one server.
type fleet struct {
	libraries []string // the first is ours
	turns     int      // of a member that is not killed
	work      time.Duration
	start     func(t *testing.T) (addr string)
}

var fleets = map[string]fleet{
	"redis":     {[]string{"interlock", "redsync", "bsm"}, 200, 0, servesRedis},
	"etcd":      {[]string{"interlock+etcd", "etcd"}, 50, longer, servesEtcd},
	"zookeeper": {[]string{"interlock+zookeeper", "zookeeper"}, 50, longer, servesZooKeeper},
	"shedlock":  {[]string{"interlock+shedlock", "shedlock"}, 50, longer, servesShedLock},
}

// longer than these servers need to give a lock.
const longer = 2 * time.Millisecond

func servesRedis(t *testing.T) string     { return servers.Redis(t) }
func servesEtcd(t *testing.T) string      { return servers.Etcd(t) }
func servesZooKeeper(t *testing.T) string { return servers.ZooKeeper(t) }

// servesShedLock makes the table that ShedLock wants.
func servesShedLock(t *testing.T) string {
	addr := servers.Postgres(t)
	conn, err := pgx.Connect(t.Context(), "postgres://postgres@"+addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	if _, err := conn.Exec(t.Context(), `CREATE TABLE shedlock (name varchar(64) PRIMARY KEY,
		lock_until timestamp NOT NULL, locked_at timestamp NOT NULL, locked_by varchar(255) NOT NULL)`); err != nil {
		t.Fatal(err)
	}
	return addr
}

// world is a server with the lock, and a Redis in which members write when they are inside.
type world struct {
	*testing.T
	addr, listAddr string
	list           *redis.Client
}

func newWorld(t *testing.T, f fleet) *world {
	t.Helper()
	w := &world{T: t, addr: f.start(t), listAddr: servers.Redis(t)}
	w.list = redis.NewClient(&redis.Options{Addr: w.listAddr})
	t.Cleanup(func() { _ = w.list.Close() })
	return w
}

// start starts a member, and lets it begin.
func (t *world) start(o order) *childproc.Child {
	t.Helper()
	c := t.ready(o)
	t.begin(c)
	return c
}

func (t *world) begin(c *childproc.Child) {
	t.Helper()
	if err := c.Send(true); err != nil {
		t.Fatal(err)
	}
}

// ready starts a member that waits until it may begin.
func (t *world) ready(o order) *childproc.Child {
	t.Helper()
	o.Addr, o.List = t.addr, t.listAddr
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "FLEET_MEMBER=1")
	c, err := childproc.Open(cmd, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Kill)
	if err := c.Send(o); err != nil {
		t.Fatal(err)
	}
	var said news
	if err := c.Receive(&said); err != nil || !said.Ready {
		t.Fatalf("%s: %+v, %v", o.ID, said, err)
	}
	return c
}

// Old and new programs take turns while some of each are killed and started again, as in a rolling deploy that goes
// wrong.
func TestMixedFleet_UnderKills_IsNeverInsideTogether(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for name, f := range fleets {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // most of it waits for what was killed
			takesTurnsUnderKills(newWorld(t, f), f, rand.New(rand.NewPCG(seed, 0)))
		})
	}
}

func takesTurnsUnderKills(t *world, f fleet, dice *rand.Rand) {
	var members []*childproc.Child
	for _, library := range f.libraries {
		for n := range 2 {
			id := fmt.Sprint(library, "-", n)
			members = append(members, t.ready(order{Library: library, ID: id, Turns: f.turns, Work: f.work}))
		}
	}
	for _, member := range members { // together, so that no library is done before another has begun
		t.begin(member)
	}
	for _, library := range f.libraries {
		inside := t.start(order{Library: library, ID: library + "-inside", Stops: true})
		var said news
		if err := inside.Receive(&said); err != nil || !said.Inside {
			t.Fatalf("%+v, %v", said, err)
		}
		inside.Kill() // so that its lock stays until its time has run out
		anywhere := t.start(order{Library: library, ID: library + "-anywhere", Work: f.work})
		some := 1 + dice.IntN(20)
		t.wait("some turns of who is killed", func() bool { return t.wrote(library+"-anywhere") > some })
		anywhere.Kill()
	}
	for _, member := range members {
		var last news
		if err := member.Receive(&last); err != nil || last.Err != "" || last.Wrote != f.turns*writes {
			t.Errorf("a member ended with %+v, %v", last, err)
		}
	}
	t.judge()
}

// A program of ours that stood still for longer than its lease finds that it was overtaken, by whichever library, and
// writes nothing.
func TestMixedFleet_AfterAStop_WritesNothing(t *testing.T) {
	for name, f := range fleets {
		for _, other := range f.libraries {
			t.Run(name+"/"+other, func(t *testing.T) {
				t.Parallel()
				isOvertaken(newWorld(t, f), f.libraries[0], other)
			})
		}
	}
}

func isOvertaken(t *world, ours, by string) {
	stopped := t.start(order{Library: ours, ID: "stopped", Turns: 1, Stops: true})
	var inside news
	if err := stopped.Receive(&inside); err != nil || !inside.Inside {
		t.Fatalf("%+v, %v", inside, err)
	}
	if err := stopped.Suspend(); err != nil {
		t.Fatal(err)
	}
	next := t.start(order{Library: by, ID: "next", Turns: 1})
	var last news
	if err := next.Receive(&last); err != nil || last.Wrote != writes {
		t.Errorf("who came after the lease: %+v, %v", last, err)
	}
	if err := stopped.Resume(); err != nil {
		t.Fatal(err)
	}
	if err := stopped.Send(true); err != nil {
		t.Fatal(err)
	}
	if err := stopped.Receive(&last); err != nil || last.Wrote != 0 || last.Err == "" {
		t.Errorf("who was stopped: %+v, %v", last, err)
	}
	t.judge()
}

// wrote is how often a member has written.
func (t *world) wrote(id string) (n int) {
	t.Helper()
	all, err := t.list.LRange(t.Context(), written, 0, -1).Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, turn := range all {
		if strings.HasPrefix(turn, id+" ") {
			n++
		}
	}
	return n
}

// judge fails if a turn wrote after another had begun to. A turn that was killed has written less.
func (t *world) judge() {
	t.Helper()
	all, err := t.list.LRange(t.Context(), written, 0, -1).Result()
	if err != nil || len(all) == 0 {
		t.Fatalf("%d writes, %v", len(all), err)
	}
	of := map[string]int{} // turns of each library
	seen := map[string]bool{}
	for i, turn := range all {
		if i > 0 && all[i-1] == turn {
			continue
		}
		if seen[turn] {
			t.Errorf("write %d: turn %q goes on after %q had begun", i, turn, all[i-1])
		}
		seen[turn] = true
		library, _, _ := strings.Cut(turn, "-")
		of[library]++
	}
	t.Logf("turns: %v", of)
}

// wait waits until is answers true.
func (t *world) wait(what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(); <-time.After(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited for %s for a minute", what)
		}
	}
}
