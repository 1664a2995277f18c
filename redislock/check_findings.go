package redislock

import (
	"fmt"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/enginekit"
)

// opinion is what a check says of one server.
type opinion struct {
	level          driver.Level
	detail, advice string
}

func fine(detail string, args ...any) *opinion {
	return &opinion{level: driver.LevelOK, detail: fmt.Sprintf(detail, args...)}
}

func warn(advice, detail string, args ...any) *opinion {
	return &opinion{driver.LevelWarn, fmt.Sprintf(detail, args...), advice}
}

func fail(advice, detail string, args ...any) *opinion {
	return &opinion{driver.LevelFail, fmt.Sprintf(detail, args...), advice}
}

// judgeAll runs all checks, those whose failure explains others first.
func (d *Driver) judgeAll(f *facts) []driver.Finding {
	return slices.Concat(
		merge("role", f.nodes, checkRole),
		merge("version", f.nodes, checkVersion),
		merge("cluster", f.nodes, func(n *nodeFacts) *opinion { return checkCluster(n, f) }),
		merge("rights", f.nodes, func(n *nodeFacts) *opinion { return checkRights(n, d.opts.Prefix) }),
		merge("eviction", f.nodes, checkEviction),
		merge("memory", f.nodes, checkMemory),
		merge("writes", f.nodes, checkWrites),
		merge("replicas", f.nodes, func(n *nodeFacts) *opinion { return checkReplicas(n, d.opts.Replicas) }),
		merge("persistence", f.nodes, checkPersistence),
		merge("buffers", f.nodes, checkBuffers),
		merge("coverage", f.nodes, func(n *nodeFacts) *opinion { return checkCoverage(n, len(f.nodes)) }),
		merge("failover", f.nodes, checkFailover),
		merge("latency", f.nodes, checkLatency),
		merge("strangers", f.nodes, checkStrangers),
		checkClocks(f.nodes),
		checkPushes(f.links),
		checkSkipped(f.nodes),
	)
}

// merge makes one finding of what a check says of each server: the worst, and of which servers it is true. There is
// none of a check that knows nothing of any, for which judge returns nil.
func merge(check string, nodes []*nodeFacts, judge func(*nodeFacts) *opinion) []driver.Finding {
	var order []opinion // distinct ones
	addrs := make(map[opinion][]string)
	judged := 0
	for _, n := range nodes {
		v := judge(n)
		if v == nil {
			continue
		}
		judged++
		if addrs[*v] == nil {
			order = append(order, *v)
		}
		addrs[*v] = append(addrs[*v], n.addr)
	}
	if len(order) == 0 {
		return nil
	}
	worst := slices.MaxFunc(order, func(a, b opinion) int { return enginekit.CompareLevels(a.level, b.level) })
	if len(order) == 1 {
		f := driver.Finding{Check: check, Level: worst.level, Detail: worst.detail, Advice: worst.advice}
		if judged > 1 {
			f.Detail = fmt.Sprintf("all %d primaries: %s", judged, f.Detail)
		}
		return []driver.Finding{f}
	}
	var details []string
	for _, v := range order {
		if v.level == worst.level {
			details = append(details, strings.Join(addrs[v], ", ")+": "+v.detail)
		}
	}
	return []driver.Finding{{
		Check: check, Level: worst.level, Detail: strings.Join(details, "; "), Advice: worst.advice,
	}}
}

// skippedChecks names what cannot be judged without a command.
var skippedChecks = map[string]string{
	"INFO":         "role, version, cluster, eviction, memory, writes, replicas, persistence",
	"CONFIG GET":   "appendfsync, snapshots, min-replicas-to-write, buffers, coverage, failover",
	"CLUSTER INFO": "cluster",
	"TIME":         "clock",
}

// checkSkipped says what was not checked and why, for each command.
func checkSkipped(nodes []*nodeFacts) []driver.Finding {
	var findings []driver.Finding
	for _, command := range []string{"INFO", "CLUSTER INFO", "CONFIG GET", "TIME"} {
		findings = append(findings, merge("permissions", nodes, func(n *nodeFacts) *opinion {
			i := slices.IndexFunc(n.refused, func(r refusedCommand) bool { return r.command == command })
			if i < 0 {
				return nil
			}
			return skip(n.refused[i])
		})...)
	}
	return findings
}

func skip(r refusedCommand) *opinion {
	checks := skippedChecks[r.command]
	switch {
	case isDenied(r.err):
		right := "+" + strings.ToLower(strings.ReplaceAll(r.command, " ", "|"))
		return warn("give the user "+right+", or let another one run the check",
			"not checked: %s; the user may not run %s", checks, r.command)
	case r.late():
		return warn("see whether the server hangs", "not checked: %s; the server has not answered %s in time", checks,
			r.command)
	}
	return warn("check these by hand", "not checked: %s; %s is answered: %v", checks, r.command, r.err)
}
