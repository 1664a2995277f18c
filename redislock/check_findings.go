// The list of all checks, and how the opinions about several primaries become one finding. check_facts.go brings the
// facts, the judges are in the other check_*.go files, and check.go reports the result.

package redislock

import (
	"fmt"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/enginekit"
)

// opinion is what a check says of one server. It is compared by value: equal opinions of several servers are one
// finding.
type opinion struct {
	level          driver.Level
	detail, advice string
}

// fine, warn and fail make opinions of the three levels. Advice comes first, as what the operator can do is never
// formatted.
func fine(detail string, args ...any) *opinion {
	return &opinion{level: driver.LevelOK, detail: fmt.Sprintf(detail, args...)}
}

func warn(advice, detail string, args ...any) *opinion {
	return &opinion{driver.LevelWarn, fmt.Sprintf(detail, args...), advice}
}

func fail(advice, detail string, args ...any) *opinion {
	return &opinion{driver.LevelFail, fmt.Sprintf(detail, args...), advice}
}

// judgeAll runs all checks. Those whose failure explains the failures of others come first.
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

// merge makes one finding of a check's opinions about all servers. It has the worst level, and names the servers that
// it is about unless all agree. judge returns nil for a server of which it knows nothing; if it does so for all, there
// is no finding.
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
			order = append(order, *v) // in the order of the servers, so that the text is the same each time
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

// skippedChecks names, by command, the checks that need it.
var skippedChecks = map[string]string{
	"INFO":         "role, version, cluster, eviction, memory, writes, replicas, persistence",
	"CONFIG GET":   "appendfsync, snapshots, min-replicas-to-write, buffers, coverage, failover",
	"CLUSTER INFO": "cluster",
	"TIME":         "clock",
}

// checkSkipped says what was not checked and why, one finding for each command. A check without facts is silent by
// itself, so without this a missing right would look like a sound server.
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

// skip is the opinion about a command that brought no answer: the user may not run it, it was late, or something else.
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
