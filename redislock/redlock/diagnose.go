// Diagnose for operators: each node by itself, as redislock judges it, and all of them together.

package redlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/enginekit"
	"github.com/interlock-go/interlock/redislock"
)

// diagnosisTime bounds Diagnose: nodes that hang must not make it hang.
const (
	// diagnosisTime bounds Diagnose: nodes that hang must not hang it.
	diagnosisTime = 10 * time.Second

	// farApart is the difference of two nodes' clocks from which on Diagnose warns. Leases do not depend on it. But
	// tokens run ahead of the other clocks by as much, and a node whose clock is set to the others' ends its leases
	// early by as much.
	farApart = 500 * time.Millisecond
)

// checksPage explains the checks that are not redislock's.
const checksPage = "docs/doctor.md#findings-on-redlock"

// facts are what a node has said of itself. After an error only name and err are set.
type facts struct {
	name     string
	run      string        // the run ID of its server
	ahead    time.Duration // its clock beyond ours
	trip     time.Duration // the round trip in which that was asked
	findings []driver.Finding
	err      error
}

// Diagnose judges every node as redislock does, and what only all of them together show: whether there are enough, and
// an odd number, whether two are one server, whether each keeps its data, and how far their clocks are apart. What
// fails comes first. It blocks for 10 seconds at most and changes nothing, except that a node which has rested long
// enough may get its mark.
func (d *Driver) Diagnose(ctx context.Context) []driver.Finding {
	ctx, cancel := context.WithTimeout(ctx, diagnosisTime)
	defer cancel()
	found := make([]facts, len(d.nodes))
	var all sync.WaitGroup
	for i, n := range d.nodes {
		all.Go(func() { found[i] = n.ask(ctx) })
	}
	all.Wait()
	findings := slices.Concat(d.judgeNumber(found), judgeNames(found), judgeClocks(found))
	for _, f := range found {
		for _, one := range f.findings {
			// redislock's advice about persistence is for one server; here a node without data rests.
			if one.Check == "persistence" && one.Level == driver.LevelWarn {
				one.Advice = fmt.Sprintf("set appendonly yes and appendfsync always; a node that was restarted "+
					"without an append-only file does not vote for %v, but if a majority forget at once nothing "+
					"helps but tokens",
					d.opts.LongestLease)
			}
			one.Detail = f.name + ": " + one.Detail
			findings = append(findings, one)
		}
	}
	return enginekit.Explained(checksPage, findings)
}

// runScript asks for the run ID of a server, and for its clock, in one round trip.
var runScript = redislock.NewScript(`
local t = redis.call('TIME')
return string.match(redis.call('INFO', 'server'), 'run_id:(%w+)') .. ' ' .. t[1] * 1000000 + t[2]
`)

// ask asks one node.
func (n *node) ask(ctx context.Context) facts {
	f := facts{name: n.name}
	d := n.driver()
	if d == nil {
		f.err = n.failure()
		return f
	}
	f.findings = d.Diagnose(ctx)
	sent := time.Now()
	// It names the mark's key, for which the user certainly has rights.
	key := n.opts.Prefix + markKey
	r := n.guard.Conn.Call(ctx, &redislock.Call{Script: runScript, Slot: redislock.SlotOf(key), Keys: []string{key}})
	f.trip = time.Since(sent)
	if f.err = r.Err; f.err != nil {
		return f
	}
	var micros int64
	if _, err := fmt.Sscan(r.Text, &f.run, &micros); err != nil {
		f.err = fmt.Errorf("the answer %q cannot be read: %w", r.Text, err)
		return f
	}
	// The server read its clock somewhere within the trip.
	f.ahead = time.UnixMicro(micros).Sub(sent.Add(f.trip / 2))
	var other *setError
	switch err := n.guard.look(ctx); {
	case errors.As(err, &other):
		f.findings = append(f.findings, driver.Finding{
			Check: "set", Level: driver.LevelFail, Detail: err.Error(), Advice: "name the same servers in all programs",
		})
	case err != nil:
		f.findings = append(f.findings, driver.Finding{
			Check: "vote", Level: driver.LevelWarn, Detail: err.Error(),
			Advice: "wait; nothing is wrong if the node was restarted",
		})
	}
	return f
}

// judgeNumber judges how many nodes there are, and how many answer.
func (d *Driver) judgeNumber(found []facts) []driver.Finding {
	nodes := driver.Finding{
		Check: "nodes", Level: driver.LevelOK, Detail: fmt.Sprintf("%d nodes, %d are a majority", len(found), d.quorum),
	}
	if len(found)%2 == 0 {
		nodes.Level, nodes.Advice = driver.LevelWarn, evenAdvice(len(found))
	}
	reach := driver.Finding{Check: "majority", Level: driver.LevelOK, Detail: "all nodes answer"}
	var errs []string
	for _, f := range found {
		if f.err != nil {
			errs = append(errs, f.name+": "+f.err.Error())
		}
	}
	if len(errs) > 0 {
		reach.Level = driver.LevelWarn
		reach.Detail = fmt.Sprintf("%d of %d nodes do not answer: %s", len(errs), len(found), strings.Join(errs, "; "))
		reach.Advice = "check the address, the network and the server"
	}
	// Fewer than a majority grant nothing, so that is a failure and not a warning.
	if len(found)-len(errs) < d.quorum {
		reach.Level = driver.LevelFail
	}
	return []driver.Finding{nodes, reach}
}

// judgeNames finds two nodes that are one server: that server would have two votes.
func judgeNames(found []facts) []driver.Finding {
	same := driver.Finding{Check: "same server", Level: driver.LevelOK, Detail: "the nodes are different servers"}
	for i, f := range found {
		for _, o := range found[:i] {
			if f.run != "" && f.run == o.run {
				same.Level = driver.LevelFail
				same.Detail = fmt.Sprintf("%s and %s are one server, which so has two votes", o.name, f.name)
				same.Advice = "name each server once"
			}
		}
	}
	return []driver.Finding{same}
}

// judgeClocks compares the nodes' clocks with each other; ours is only the measure.
func judgeClocks(found []facts) []driver.Finding {
	var first, last *facts
	for i := range found {
		f := &found[i]
		if f.err != nil {
			continue
		}
		if first == nil || f.ahead < first.ahead {
			first = f
		}
		if last == nil || f.ahead > last.ahead {
			last = f
		}
	}
	if first == last { // one or none has answered
		return nil
	}
	apart := last.ahead - first.ahead
	finding := driver.Finding{Check: "node clocks", Level: driver.LevelOK, Detail: fmt.Sprintf(
		"the clocks of the nodes are within %v", max(apart, first.trip, last.trip).Round(time.Millisecond))}
	// Half of each round trip is unknown, and counts in the nodes' favour.
	if apart-first.trip/2-last.trip/2 > farApart {
		finding.Level = driver.LevelWarn
		finding.Detail = fmt.Sprintf("the clock of %s is %v ahead of that of %s",
			last.name, apart.Round(time.Millisecond), first.name)
		finding.Advice = "set the clocks over the network, by slewing: a jump forward of a node's clock ends its " +
			"leases early"
	}
	return []driver.Finding{finding}
}
