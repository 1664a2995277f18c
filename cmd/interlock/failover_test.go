package main

import (
	"context"
	"encoding/json"
	"maps"
	"testing"
	"time"

	"github.com/interlock-go/interlock/internal/servers"
	"github.com/rogpeppe/go-internal/testscript"
)

// deployment is the key of a script's Sentinel deployment.
type deployment struct{}

// TestScripts_Failover runs testdata/failover. Each script has a Sentinel deployment with one replica of its own, which
// two URLs name by different Sentinels in a different order: $ONE and $OTHER. Beside the commands of TestScripts they
// use:
//
//	replicated                 waits until the replica has all that the primary has
//	cutoff                     makes the replica unable to follow the primary
//	killprimary                kills the primary, and waits for nothing
//	failover                   waits until the replica is the primary
//	restartdead                starts the old primary again, and waits until it follows the new one
//	waitrenewed NAME LEASE     waits until a lock was renewed after the primary's death, as $OTHER sees it
func TestScripts_Failover(t *testing.T) {
	p := scripts("testdata/failover", false, func(env *testscript.Env) error {
		s := servers.RedisSentinel(env.T().(testing.TB), 1, nil)
		env.Values[deployment{}] = &failing{SentinelRedis: s}
		env.Setenv("ONE", sentinelURL(s, 0, 1))
		env.Setenv("OTHER", sentinelURL(s, 2, 1, 0))
		return nil
	})
	maps.Copy(p.Cmds, map[string]func(ts *testscript.TestScript, neg bool, args []string){
		"replicated":  func(ts *testscript.TestScript, _ bool, _ []string) { deploymentOf(ts).AwaitReady() },
		"cutoff":      func(ts *testscript.TestScript, _ bool, _ []string) { deploymentOf(ts).cutOff(ts) },
		"killprimary": func(ts *testscript.TestScript, _ bool, _ []string) { deploymentOf(ts).killPrimary() },
		"failover":    func(ts *testscript.TestScript, _ bool, _ []string) { deploymentOf(ts).awaitFailover(ts) },
		"restartdead": func(ts *testscript.TestScript, _ bool, _ []string) { deploymentOf(ts).RestartDead() },
		"waitrenewed": waitRenewed,
	})
	testscript.Run(t, p)
}

// failing is a deployment and what has happened to it.
type failing struct {
	*servers.SentinelRedis
	old    *servers.RedisNode // the primary that was killed
	killed time.Time
}

// waitRenewed polls: a lease of this length that ends later than it could at the primary's death was renewed since.
func waitRenewed(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: waitrenewed NAME LEASE")
	}
	lease, err := time.ParseDuration(args[1])
	ts.Check(err)
	oldest := deploymentOf(ts).killed.Add(lease)
	waitUntil(ts, "a renewal of "+args[0], func() bool {
		out, _ := commandOf(ts, []string{
			"interlock", "get", args[0], "--url", ts.Getenv("OTHER"), "-o",
			"json",
		}).Output()
		var seen locksObject
		if json.Unmarshal(out, &seen) != nil || len(seen.Locks) != 1 || len(seen.Locks[0].Holders) != 1 {
			return false
		}
		return seen.Locks[0].Holders[0].Until.After(oldest)
	})
}

func deploymentOf(ts *testscript.TestScript) *failing { return ts.Value(deployment{}).(*failing) }

func (f *failing) replica() *servers.RedisNode {
	primary := f.Primary()
	for _, n := range f.Nodes() {
		if n != primary {
			return n
		}
	}
	return nil
}

// cutOff gives the replica a password that the primary does not know, and drops its connection. It still names its
// primary, so the Sentinels see nothing to put right; they promote it if it has been alone for less than some seconds.
func (f *failing) cutOff(ts *testscript.TestScript) {
	replica := f.replica()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for _, command := range [][]string{
		{"CONFIG", "SET", "masteruser", "nobody", "masterauth", "wrong"},
		{"CLIENT", "KILL", "TYPE", "master"},
	} {
		_, err := replica.Do(ctx, command...)
		ts.Check(err)
	}
}

func (f *failing) killPrimary() {
	f.old = f.Primary()
	f.old.Kill()
	f.killed = time.Now()
}

func (f *failing) awaitFailover(ts *testscript.TestScript) {
	f.AwaitFailover(f.old)
	ts.Logf("the new primary was in office after %v", time.Since(f.killed))
}
