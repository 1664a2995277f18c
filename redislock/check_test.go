package redislock

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/drivertest"
	"github.com/interlock-go/interlock/enginekit"
	"github.com/interlock-go/interlock/internal/servers"
	"github.com/interlock-go/interlock/redislock/conn"
	"github.com/interlock-go/interlock/redislock/internal/rueidisconn"
)

// byCheck returns the findings by their check, and fails if one says too little or stands in the wrong place.
func byCheck(t *testing.T, findings []driver.Finding) map[string]driver.Finding {
	t.Helper()
	found := make(map[string]driver.Finding)
	worst := driver.LevelFail
	for _, f := range findings {
		if f.Check == "" || f.Detail == "" || f.Page == "" || f.Level != driver.LevelOK && f.Advice == "" {
			t.Errorf("%+v says too little", f)
		}
		if enginekit.CompareLevels(f.Level, worst) > 0 {
			t.Errorf("%s (%s) comes after something better", f.Check, f.Level)
		}
		worst = f.Level
		if _, twice := found[f.Check]; !twice {
			found[f.Check] = f
		}
	}
	return found
}

// wantFinding fails unless the check has found that.
func wantFinding(t *testing.T, found map[string]driver.Finding, check string, level driver.Level, says string) {
	t.Helper()
	f := found[check]
	if f.Level != level || !strings.Contains(f.Detail+" "+f.Advice, says) {
		t.Errorf("%s: got %+v, want %s and %q", check, f, level, says)
	}
}

func TestDiagnose_OfAServerAlone_ChecksEverything(t *testing.T) {
	found := byCheck(t, open(t, soloOption(servers.Redis(t)), nil).Diagnose(t.Context()))
	for check, level := range map[string]driver.Level{
		"role": driver.LevelOK, "version": driver.LevelOK, "eviction": driver.LevelOK,
		"writes": driver.LevelOK, "replicas": driver.LevelOK, "persistence": driver.LevelWarn,
		"buffers": driver.LevelOK, "latency": driver.LevelOK, "clock": driver.LevelOK,
		"pushes": driver.LevelOK, "rights": driver.LevelOK, "memory": driver.LevelOK, "strangers": driver.LevelOK,
	} {
		wantFinding(t, found, check, level, "")
	}
	wantFinding(t, found, "persistence", driver.LevelWarn, "nothing is written to disk")
	wantFinding(t, found, "pushes", driver.LevelOK, "RESP3")
	if len(found) != 13 {
		t.Errorf("got %v", slices.Sorted(maps.Keys(found)))
	}
}

func TestDiagnose_WithRESP2_SaysThatPushesCostMore(t *testing.T) {
	option := soloOption(servers.Redis(t))
	option.AlwaysRESP2 = true
	wantFinding(t, byCheck(t, open(t, option, nil).Diagnose(t.Context())), "pushes", driver.LevelOK, "RESP2")
}

func TestDiagnose_OfServersThatAreSetUpBadly(t *testing.T) {
	for name, row := range map[string]struct {
		config map[string]string
		check  string
		level  driver.Level
		says   string
	}{
		"evicting keys with a time to live": {
			map[string]string{"maxmemory": "100mb", "maxmemory-policy": "volatile-lru"},
			"eviction", driver.LevelFail, "volatile-lru and maxmemory 104857600",
		},
		"evicting without a limit": {
			map[string]string{"maxmemory-policy": "allkeys-random"}, "eviction", driver.LevelWarn, "allkeys-random",
		},
		"synced every second": {
			map[string]string{"appendonly": "yes"}, "persistence", driver.LevelWarn, "appendfsync is everysec",
		},
		"synced always": {
			map[string]string{"appendonly": "yes", "appendfsync": "always"},
			"persistence", driver.LevelOK,
			"keeps all locks",
		},
		"snapshots": {map[string]string{"save": "900 1"}, "persistence", driver.LevelWarn, "save 900 1"},
		"missing replicas": {
			map[string]string{"min-replicas-to-write": "1"}, "writes", driver.LevelFail, "0 of the 1",
		},
		"small buffers": {
			map[string]string{"client-output-buffer-limit": "pubsub 64kb 0 0"},
			"buffers", driver.LevelWarn,
			"65536 0 0",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := servers.RedisServer(t, &servers.RedisOptions{Config: row.config})
			found := byCheck(t, open(t, soloOption(s.Addr()), nil).Diagnose(t.Context()))
			wantFinding(t, found, row.check, row.level, row.says)
		})
	}
}

func TestDiagnose_OfAReplication_ComparesWithWhatIsWaitedFor(t *testing.T) {
	r := servers.RedisReplicated(t, 2, nil)
	for replicas, row := range map[int]struct {
		level driver.Level
		says  string
	}{
		0: {driver.LevelWarn, "replicas=2"},
		1: {driver.LevelWarn, "waits for only 1"},
		2: {driver.LevelOK, "waits for all"},
		3: {driver.LevelFail, "waits for 3"},
	} {
		d := open(t, soloOption(r.Primary.Addr()), &Options{Replicas: replicas})
		wantFinding(t, byCheck(t, d.Diagnose(t.Context())), "replicas", row.level, row.says)
	}
}

func TestDiagnose_OfACluster(t *testing.T) {
	if drivertest.Apart(t) {
		return
	}
	c := servers.RedisCluster(t, 3, 0, nil)
	node := c.Owner(0)
	option := soloOption(node.Addr())
	if _, err := start(t.Context(), rueidisconn.New(dial(t, option), true), nil); !errors.Is(err, conn.ErrClusterNode) {
		t.Errorf("a client for a server that stands alone is told: %v", err)
	}
	alone, err := start(t.Context(), newPlainConn(dial(t, option)), nil) // another client's Conn, which does not ask
	if err != nil {
		t.Fatal(err)
	}
	wantFinding(t, byCheck(t, alone.Diagnose(t.Context())), "cluster", driver.LevelFail, "redis+cluster://")
	if err := alone.Close(); err != nil {
		t.Error(err)
	}

	option.ForceSingleClient = false
	d := open(t, option, nil)
	var found map[string]driver.Finding
	eventually(t, "all primaries to answer within a second", func() bool {
		found = byCheck(t, d.Diagnose(t.Context()))
		return strings.Contains(found["cluster"].Detail, "3 primaries")
	})
	wantFinding(t, found, "cluster", driver.LevelOK, "3 primaries")
	wantFinding(t, found, "eviction", driver.LevelOK, "all 3 primaries")
	if _, err := node.Do(t.Context(), "CONFIG", "SET", "maxmemory", "50mb", "maxmemory-policy",
		"allkeys-lru"); err != nil {
		t.Fatal(err)
	}
	wantFinding(t, byCheck(t, d.Diagnose(t.Context())), "eviction", driver.LevelFail,
		node.Addr()+": maxmemory-policy is allkeys-lru")

	wantFinding(t, found, "coverage", driver.LevelWarn, "cluster-require-full-coverage is yes")
	wantFinding(t, found, "failover", driver.LevelOK, "1s")
	wantFinding(t, found, "rights", driver.LevelOK, "may run all")
	for _, n := range c.Nodes() {
		set(t, n, "cluster-require-full-coverage", "no")
		set(t, n, "cluster-node-timeout", "20000")
	}
	found = byCheck(t, d.Diagnose(t.Context()))
	wantFinding(t, found, "coverage", driver.LevelOK, "go on")
	wantFinding(t, found, "failover", driver.LevelWarn, "20s")
	for _, n := range c.Nodes() {
		set(t, n, "cluster-require-full-coverage", "yes")
		set(t, n, "cluster-node-timeout", "1000")
	}

	c.KillOwner(conn.Slots - 1)
	eventually(t, "the Cluster to be found broken", func() bool {
		f := byCheck(t, d.Diagnose(t.Context()))["cluster"]
		return f.Level == driver.LevelFail && strings.Contains(f.Detail, "cluster_state is fail")
	})
}

func TestDiagnose_WithoutRights_SaysWhatWasNotChecked(t *testing.T) {
	s := servers.RedisServer(t, &servers.RedisOptions{
		Users: []string{"bob on >hunter2 ~* &* +@all -info -config -time -@admin"},
	})
	option := soloOption(s.Addr())
	option.Username, option.Password = "bob", "hunter2"
	log := &bytes.Buffer{}
	d := open(t, option, &Options{Check: CheckRefuse, Logger: slog.New(slog.NewTextHandler(log, nil))})
	for _, says := range []string{"+info", "eviction"} {
		if !strings.Contains(log.String(), says) {
			t.Errorf("the log of the start does not say %q: %s", says, log)
		}
	}
	if strings.Contains(log.String(), "config") {
		t.Errorf("the start asks too much: %s", log)
	}
	all := ""
	for _, f := range d.Diagnose(t.Context()) {
		all += f.Check + " " + string(f.Level) + " " + f.Detail + " " + f.Advice + "\n"
	}
	for _, says := range []string{
		"permissions warn not checked: role, version", "+info,", "+config|get,", "+time,", "may not run CONFIG GET",
		"latency ok",
	} {
		if !strings.Contains(all, says) {
			t.Errorf("nothing says %q:\n%s", says, all)
		}
	}
	if strings.Contains(all+log.String(), "hunter2") {
		t.Errorf("the password is shown:\n%s%s", all, log)
	}
}

func TestStart_UnderEachPolicy(t *testing.T) {
	s := servers.RedisServer(t, &servers.RedisOptions{
		Config: map[string]string{"maxmemory": "100mb", "maxmemory-policy": "volatile-ttl"},
	})
	begin := func(check CheckPolicy) (string, error) {
		log := &bytes.Buffer{}
		d, err := New(dial(t, soloOption(s.Addr())),
			&Options{Check: check, Logger: slog.New(slog.NewTextHandler(log, nil))})
		if err == nil {
			t.Cleanup(func() { _ = d.Close() })
		}
		return log.String(), err
	}
	log, err := begin(CheckWarn)
	if err != nil || !strings.Contains(log, "level=ERROR") || !strings.Contains(log, "noeviction") ||
		!strings.Contains(log, "level=WARN") || !strings.Contains(log, "check=persistence") {
		t.Errorf("CheckWarn: %v, %s", err, log)
	}
	if log, err := begin(CheckNone); err != nil || log != "" {
		t.Errorf("CheckNone: %v, %s", err, log)
	}
	_, err = begin(CheckRefuse)
	if err == nil || !strings.Contains(err.Error(), "volatile-ttl") ||
		!strings.Contains(err.Error(), "set maxmemory-policy noeviction") {
		t.Errorf("CheckRefuse: %v, want an error that says what to do", err)
	}
	if strings.Contains(err.Error(), "persistence") {
		t.Errorf("CheckRefuse also names what is only a warning: %v", err)
	}
}

// scriptedNode answers commands from a table, and counts them.
type scriptedNode struct {
	addr    string
	answers map[string]any // an error is returned as such; what is missing hangs
	asked   chan string
}

func (n *scriptedNode) Addr() string { return n.addr }

func (n *scriptedNode) Do(ctx context.Context, args ...string) (any, error) {
	command := strings.Join(args, " ")
	if n.asked != nil {
		n.asked <- command
	}
	answer, known := n.answers[command]
	if !known {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if err, bad := answer.(error); bad {
		return nil, err
	}
	return answer, nil
}

// scriptedConn is a Conn of which only what a check needs does anything.
type scriptedConn struct {
	Conn
	nodes []Node
	err   error
}

func (c *scriptedConn) Start(context.Context, string, Handler) error    { return nil }
func (c *scriptedConn) Sharded() bool                                   { return false }
func (c *scriptedConn) Close() error                                    { return nil }
func (c *scriptedConn) Nodes(context.Context) ([]Node, error)           { return c.nodes, c.err }
func (c *scriptedConn) Call(context.Context, *Call) Reply               { return Reply{Link: 1} }
func (c *scriptedConn) Listen(context.Context, uint16, string) error    { return nil }
func (c *scriptedConn) Batch(context.Context, []Call, func(int, Reply)) {}

const soundInfo = "# Server\r\nredis_version:7.0.15\r\nrole:master\r\nmaxmemory:0\r\nmaxmemory_policy:noeviction\r\n" +
	"aof_enabled:1\r\n"

func TestStart_AsksOneCommandOfEachServer(t *testing.T) {
	asked := make(chan string, 100)
	node := &scriptedNode{"a", map[string]any{"INFO": soundInfo}, asked}
	d, err := NewConn(&scriptedConn{nodes: []Node{node}}, &Options{Check: CheckRefuse})
	if err != nil || len(asked) != 1 {
		t.Errorf("%v, after %d commands", err, len(asked))
	}
	_ = d.Close()
}

func TestStart_WithServersThatDoNotAnswer(t *testing.T) {
	synctest.Test(t, startWithServersThatDoNotAnswer)
}

func startWithServersThatDoNotAnswer(t *testing.T) {
	hung := &scriptedConn{nodes: []Node{&scriptedNode{addr: "a"}}}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := start(ctx, hung, &Options{Check: CheckRefuse}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("when the caller's time is over: %v", err)
	}
	log := &bytes.Buffer{}
	o := &Options{Check: CheckRefuse, Logger: slog.New(slog.NewTextHandler(log, nil))}
	began := time.Now()
	if _, err := start(t.Context(), hung, o); err != nil || !strings.Contains(log.String(), "in time") {
		t.Errorf("when the check's time is over: %v, %s", err, log)
	}
	if took := time.Since(began); took != startCheckTime {
		t.Errorf("the check took %v, want %v", took, startCheckTime)
	}
	gone := &scriptedConn{err: errors.New("connection refused")}
	if _, err := start(t.Context(), gone, o); err == nil || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("without a server: %v", err)
	}
	if _, err := start(t.Context(), gone, nil); err != nil {
		t.Errorf("without a server, and only to be warned: %v", err)
	}
}

// judged returns what the checks find of servers that say that.
func judged(t *testing.T, o *Options, sharded bool, nodes ...*nodeFacts) map[string]driver.Finding {
	t.Helper()
	opts, err := o.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	d := &Driver{opts: opts}
	return byCheck(t, enginekit.Explained(checksPage, d.judgeAll(&facts{nodes: nodes, sharded: sharded})))
}

func TestJudge_WhatServersSay(t *testing.T) {
	for name, row := range map[string]struct {
		info, cluster string
		sharded       bool
		check         string
		level         driver.Level
		says          string
	}{
		"Redis 6.0": {"redis_version:6.0.9", "", false, "version", driver.LevelFail, "6.0.9 is too old"},
		"Redis 6.2": {"redis_version:6.2.0", "", false, "version", driver.LevelOK, "Redis 6.2.0"},
		"Redis 10":  {"redis_version:10.0.1", "", false, "version", driver.LevelOK, "Redis 10.0.1"},
		"Valkey": {
			"redis_version:7.2.4\nvalkey_version:8.0.1", "", false, "version", driver.LevelOK, "Valkey 8.0.1",
		},
		"no version": {"redis_version:unstable", "", false, "version", driver.LevelWarn, "does not tell"},
		"a Cluster of 6.2": {
			"redis_version:6.2.7\ncluster_enabled:1", "cluster_state:ok", false, "version", driver.LevelFail, "sharded",
		},
		"a replica":         {"role:slave", "", false, "role", driver.LevelFail, "replica"},
		"a Sentinel":        {"redis_mode:sentinel", "", false, "role", driver.LevelFail, "redis+sentinel://"},
		"loading":           {"loading:1", "", false, "writes", driver.LevelFail, "loading"},
		"a full disk":       {"aof_last_write_status:err", "", false, "writes", driver.LevelFail, "append-only"},
		"a snapshot failed": {"rdb_last_bgsave_status:err", "", false, "writes", driver.LevelWarn, "snapshot"},
		"evicted before": {
			"maxmemory:9\nmaxmemory_policy:allkeys-lfu\nevicted_keys:12", "", false, "eviction",
			driver.LevelFail, "12 keys",
		},
		"a replica that syncs": {
			"role:master\nslave0:ip=h,port=1,state=wait_bgsave", "", false, "replicas",
			driver.LevelOK, "no replica follows",
		},
		"no AOF, no CONFIG": {"aof_enabled:0", "", false, "persistence", driver.LevelWarn, "appendonly is no"},
		"slots without a node": {
			"redis_version:7.0.1\ncluster_enabled:1", "cluster_state:ok\ncluster_size:1\ncluster_slots_assigned:16383",
			true, "cluster", driver.LevelFail, "1 of 16384 slots",
		},
		"slots in doubt": {
			"redis_version:7.0.1\ncluster_enabled:1",
			"cluster_state:ok\ncluster_size:1\ncluster_slots_assigned:16384\ncluster_slots_ok:16000", true, "cluster",
			driver.LevelWarn, "384 of 16384 slots",
		},
		"a silent primary": {
			"redis_version:7.0.1\ncluster_enabled:1",
			"cluster_state:ok\ncluster_size:2\ncluster_slots_assigned:16384\ncluster_slots_ok:16384", true, "cluster",
			driver.LevelWarn, "1 of 2 primaries",
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := &nodeFacts{addr: "h:1", info: lines(row.info), cluster: lines(row.cluster)}
			wantFinding(t, judged(t, nil, row.sharded, n), row.check, row.level, row.says)
		})
	}
}

func TestJudge_ClocksThatDiffer(t *testing.T) {
	at := func(addr string, ahead, trip time.Duration) *nodeFacts {
		return &nodeFacts{addr: addr, ahead: ahead, clocked: true, trips: []time.Duration{trip}}
	}
	far := judged(t, nil, false, at("a", -time.Second, time.Millisecond), at("b", time.Second, time.Millisecond))
	wantFinding(t, far, "clock", driver.LevelWarn, "the clock of b is 2s ahead of that of a")
	unknown := judged(t, nil, false, at("a", 0, time.Second), at("b", time.Second, time.Second))
	wantFinding(t, unknown, "clock", driver.LevelOK, "")
	wantFinding(t, unknown, "latency", driver.LevelWarn, "1s")
	alone := judged(t, nil, false, at("a", -time.Hour, time.Millisecond))
	wantFinding(t, alone, "clock", driver.LevelOK, "1h0m0s behind")
}

func TestJudge_SeveralServers_NamesThoseThatAreWorst(t *testing.T) {
	said := func(addr, policy string) *nodeFacts {
		return &nodeFacts{addr: addr, info: lines("maxmemory:5\nmaxmemory_policy:" + policy)}
	}
	found := judged(t, nil, false, said("a", "noeviction"), said("b", "allkeys-lru"), said("c", "volatile-lru"))
	detail := found["eviction"].Detail
	if strings.Contains(detail, "a: ") || !strings.Contains(detail, "b: maxmemory-policy is allkeys-lru") ||
		!strings.Contains(detail, "; c: ") {
		t.Errorf("got %q", detail)
	}
}
