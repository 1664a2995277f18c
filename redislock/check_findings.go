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
	replicas := d.opts.Replicas
	checks := []struct {
		name  string
		judge func(n *nodeFacts) *opinion // nil: nothing is known
	}{
		{"role", checkRole},
		{"version", checkVersion},
		{"cluster", func(n *nodeFacts) *opinion { return checkCluster(n, f) }},
		{"eviction", checkEviction},
		{"writes", checkWrites},
		{"replicas", func(n *nodeFacts) *opinion { return checkReplicas(n, replicas) }},
		{"persistence", checkPersistence},
		{"buffers", checkBuffers},
		{"latency", checkLatency},
	}
	var findings []driver.Finding
	for _, c := range checks {
		if finding, known := merge(c.name, f.nodes, c.judge); known {
			findings = append(findings, finding)
		}
	}
	findings = append(findings, checkClocks(f.nodes)...)
	findings = append(findings, checkPushes(f.links)...)
	return append(findings, checkSkipped(f.nodes)...)
}

// merge makes one finding of what a check says of each server: the worst, and of which servers it is true.
func merge(check string, nodes []*nodeFacts, judge func(*nodeFacts) *opinion) (driver.Finding, bool) {
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
		return driver.Finding{}, false
	}
	worst := slices.MaxFunc(order, func(a, b opinion) int { return enginekit.CompareLevels(a.level, b.level) })
	if len(order) == 1 {
		f := driver.Finding{Check: check, Level: worst.level, Detail: worst.detail, Advice: worst.advice}
		if judged > 1 {
			f.Detail = fmt.Sprintf("all %d primaries: %s", judged, f.Detail)
		}
		return f, true
	}
	var details []string
	for _, v := range order {
		if v.level == worst.level {
			details = append(details, strings.Join(addrs[v], ", ")+": "+v.detail)
		}
	}
	f := driver.Finding{Check: check, Level: worst.level, Detail: strings.Join(details, "; "), Advice: worst.advice}
	return f, true
}

// skippedChecks names what cannot be judged without a command.
var skippedChecks = map[string]string{
	"INFO":         "role, version, cluster, eviction, writes, replicas, persistence",
	"CONFIG GET":   "appendfsync, snapshots, min-replicas-to-write, buffers",
	"CLUSTER INFO": "cluster",
	"TIME":         "clock",
}

// checkSkipped says what was not checked and why, for each command.
func checkSkipped(nodes []*nodeFacts) []driver.Finding {
	var findings []driver.Finding
	for _, command := range []string{"INFO", "CLUSTER INFO", "CONFIG GET", "TIME"} {
		f, skipped := merge("permissions", nodes, func(n *nodeFacts) *opinion {
			i := slices.IndexFunc(n.refused, func(r refusedCommand) bool { return r.command == command })
			if i < 0 {
				return nil
			}
			return skip(n.refused[i])
		})
		if skipped {
			findings = append(findings, f)
		}
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
