// The checks of a deployment, at the start (driver.go) and for Diagnose. askServers asks for the facts, judgeAll has
// the list of what check_rules.go judges, and enginekit reports it.

package redislock

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
)

const (
	// startCheckTime bounds the check at the start, diagnosisTime that of Diagnose: a hanging server must not make its
	// clients hang.
	startCheckTime = 3 * time.Second
	diagnosisTime  = 8 * time.Second
)

// checksPage explains the checks.
const checksPage = "docs/doctor.md#findings-on-redis"

// Diagnose asks every primary for its state and its settings, and judges what locks depend on: version and role,
// eviction, memory, persistence, replicas, the state of a Cluster, rights, clocks, how pushes arrive, and how long a
// round trip takes. It also looks whether some of the first thousand keys are locks of other libraries. What fails
// comes first. It changes nothing, and takes some three round trips, and four for each 200 keys; with servers that
// hang it ends after 8 seconds.
//
// Beyond what locking itself needs, it uses INFO, CONFIG GET, TIME and in a Cluster CLUSTER INFO. A check whose command
// the user may not run is a warning that says so. For the locks of others it uses SCAN, TYPE, PTTL, GETRANGE, HLEN and
// HKEYS, and says nothing of what the user may not read.
func (d *Driver) Diagnose(ctx context.Context) []driver.Finding {
	ctx, cancel := context.WithTimeout(ctx, diagnosisTime)
	defer cancel()
	found, err := d.askServers(ctx, true)
	if err != nil {
		return enginekit.Explained(checksPage, []driver.Finding{unreachable(err)})
	}
	return enginekit.Explained(checksPage, d.judgeAll(found))
}

// checkAtStart applies Options.Check to the findings. It costs two round trips, one for the list of primaries and one
// for INFO (in a Cluster three). A question without an answer becomes a warning, because only a server that is known to
// be wrong may be refused.
func (d *Driver) checkAtStart(ctx context.Context) error {
	if d.opts.Check == CheckNone {
		return nil
	}
	bounded, cancel := context.WithTimeout(ctx, startCheckTime)
	defer cancel()
	found, err := d.askServers(bounded, false)
	if over := ended(ctx); over != nil { // the caller has given up; its own error is the better one
		return over
	}
	findings := []driver.Finding{unreachable(err)}
	if err == nil {
		findings = d.judgeAll(found)
	}
	return enginekit.Report(ctx, d.opts.Logger, "redis", enginekit.Explained(checksPage, findings), d.opts.Check)
}

// unreachable is the finding for a deployment of which no primary could be asked.
func unreachable(err error) driver.Finding {
	f := driver.Finding{
		Check: "servers", Level: driver.LevelFail, Detail: fmt.Sprintf("no primary answers: %v", err),
		Advice: "check the address, the network and the server",
	}
	if errors.Is(err, driver.ErrClosed) {
		f.Detail, f.Advice = "the driver is closed", "open it again"
	}
	return f
}

// The list of all checks, and how the opinions about several primaries become one finding.

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

// The questions of the checks: what each primary is asked, and how its answers are read.

// facts are what the servers have said.
type facts struct {
	nodes   []*nodeFacts
	sharded bool
	links   linkFact
}

// nodeFacts are what one primary has said. A field is nil or zero if the primary has not said it, so each judge has to
// tell "unknown" from "zero". While ask runs, the mutex in ask guards the fields.
type nodeFacts struct {
	addr    string
	info    map[string]string // INFO
	cluster map[string]string // CLUSTER INFO
	config  map[string]string // CONFIG GET, of the settings in configNames
	trips   []time.Duration   // round trips of TIME; takeTimes sorts them, the shortest first
	ahead   time.Duration     // the server's clock beyond ours, give or take half the shortest trip
	clocked bool              // ahead is known
	lacks   string            // commands that the user may not run, see rightsScript
	asked   bool              // lacks is known
	// noScripts: the server does not know EVAL.
	noScripts bool
	refused   []refusedCommand

	strangers *strangers // nil if the user may not look
}

// refusedCommand is a command without an answer, and why.
type refusedCommand struct {
	command string
	err     error
}

// linkFact is how pushes arrive, as far as a script that was run can tell.
type linkFact struct {
	known bool
	// same: pushes come over the connection of the replies, so a push can be trusted without a round trip. See
	// attempt.trusts.
	same bool
	err  error
}

// configNames are the settings that INFO does not tell. Servers before 7.0 take one at a time.
var configNames = []string{
	"appendfsync", "save", "min-replicas-to-write", "client-output-buffer-limit",
	"cluster-require-full-coverage", "cluster-node-timeout",
}

// trips is how often the time of a round trip is taken.
const trips = 5

// askServers asks all primaries at once. A slow one delays no other; what it has not said by the end of ctx is missing.
func (d *Driver) askServers(ctx context.Context, thorough bool) (*facts, error) {
	if d.isClosed() {
		return nil, driver.ErrClosed
	}
	nodes, err := d.conn.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	found := &facts{nodes: make([]*nodeFacts, len(nodes)), sharded: d.conn.Sharded()}
	var all sync.WaitGroup
	if thorough {
		all.Go(func() { found.links = d.askLink(ctx) })
	}
	// Each goroutine writes into a struct of its own, so they need no mutex.
	for i, node := range nodes {
		n := &nodeFacts{addr: node.Addr()}
		found.nodes[i] = n
		var rights []string
		if thorough {
			rights = d.rightsQuestion()
		}
		all.Go(func() { n.ask(ctx, node, rights, d.opts.Prefix) })
	}
	all.Wait()
	return found, nil
}

// askLink runs a script that changes nothing, to learn over which connection its answer comes. The key is that of a
// lock without a name, which cannot exist.
func (d *Driver) askLink(ctx context.Context) linkFact {
	name, slot := d.names.lock(driver.Key{Kind: driver.KindMutex})
	r := d.conn.Call(ctx, &Call{Script: lookScript, Slot: slot, Keys: []string{name}})
	return linkFact{known: r.Err == nil, same: r.Link != 0, err: r.Err}
}

// ask sends most questions to one server together, so that they cost one round trip, and measures afterwards. Without
// rights, which is the question about these, it asks only what the start needs.
func (n *nodeFacts) ask(ctx context.Context, node Node, rights []string, prefix string) {
	thorough := rights != nil
	var mu sync.Mutex // guards n while the commands run
	var all sync.WaitGroup
	run := func(take func(answer any), command ...string) {
		all.Go(func() {
			answer, err := node.Do(ctx, command...)
			mu.Lock()
			defer mu.Unlock()
			// The answer is read under the lock, but the command is sent outside of it.
			if err != nil {
				n.refuse(command, err)
				return
			}
			take(answer)
		})
	}
	run(func(answer any) { n.info = lines(answer) }, "INFO")
	if thorough {
		all.Go(func() { // a refusal is seen by askLink too, which runs a script of locks
			answer, err := node.Do(ctx, rights...)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				n.lacks, n.asked = answer.(string)
			}
			n.noScripts = err != nil && strings.Contains(err.Error(), "unknown command")
		})
		n.config = make(map[string]string, len(configNames))
		for _, name := range configNames {
			run(func(answer any) { n.setting(name, answer) }, "CONFIG", "GET", name)
		}
	}
	all.Wait()
	// Only a node of a Cluster can answer, and INFO says whether it is one.
	if n.info["cluster_enabled"] == "1" {
		run(func(answer any) { n.cluster = lines(answer) }, "CLUSTER", "INFO")
		all.Wait()
	}
	if thorough {
		// After the other questions, which would make the round trips look longer.
		n.takeTimes(ctx, node)
		n.strangers = lookForStrangers(ctx, node, prefix) // last, because it may take longest
	}
}

// refuse records that a command brought no answer, once for each command.
func (n *nodeFacts) refuse(command []string, err error) {
	name := command[0]
	if name != "INFO" && len(command) > 1 {
		name += " " + command[1]
	}
	if !slices.ContainsFunc(n.refused, func(r refusedCommand) bool { return r.command == name }) {
		n.refused = append(n.refused, refusedCommand{name, err})
	}
}

// setting takes in an answer to CONFIG GET. A server that does not know the setting answers with an empty list.
func (n *nodeFacts) setting(name string, answer any) {
	list, _ := answer.([]any)
	if len(list) != 2 {
		return
	}
	if value, ok := list[1].(string); ok {
		n.config[name] = value
	}
}

// takeTimes asks for the server's clock a few times. The shortest round trip bounds the clock's difference best: the
// server read its clock somewhere within it.
func (n *nodeFacts) takeTimes(ctx context.Context, node Node) {
	for range trips {
		sent := time.Now()
		answer, err := node.Do(ctx, "TIME")
		trip := time.Since(sent)
		if err != nil {
			n.refuse([]string{"TIME"}, err)
			if !isDenied(err) { // the others would fail in the same way, slowly
				break
			}
		}
		if now, ok := clockOf(answer); ok && (len(n.trips) == 0 || trip < slices.Min(n.trips)) {
			n.ahead, n.clocked = now.Sub(sent.Add(trip/2)), true
		}
		n.trips = append(n.trips, trip) // a refusal takes as long as an answer
	}
	slices.Sort(n.trips)
}

// clockOf reads the answer to TIME: seconds and microseconds.
func clockOf(answer any) (time.Time, bool) {
	list, _ := answer.([]any)
	if len(list) != 2 {
		return time.Time{}, false
	}
	seconds, microseconds := wholeNumber(fmt.Sprint(list[0])), wholeNumber(fmt.Sprint(list[1]))
	return time.Unix(seconds, microseconds*1000), seconds > 0
}

// lines reads the lines "name:value" of INFO and CLUSTER INFO. With RESP3 the text is a verbatim string, and some
// clients leave its format ("txt:") in front.
func lines(answer any) map[string]string {
	text, _ := answer.(string)
	fields := make(map[string]string)
	for line := range strings.Lines(strings.TrimPrefix(text, "txt:")) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	return fields
}

// number reads a field as a number, and reports whether the field is there. A text that is no number counts as 0.
func number(fields map[string]string, name string) (int, bool) {
	value, has := fields[name]
	if !has {
		return 0, false
	}
	return int(wholeNumber(value)), true
}

// online is how many replicas follow the server now: INFO has a line slave0, slave1 and so on for each.
func (n *nodeFacts) online() int {
	count := 0
	for name, about := range n.info {
		if strings.HasPrefix(name, "slave") && strings.Contains(about, "state=online") {
			count++
		}
	}
	return count
}

// isDenied reports whether err says that the user may not run the command. The server's answer begins with the word
// NOPERM.
func isDenied(err error) bool { return strings.HasPrefix(err.Error(), "NOPERM") }

// late reports whether the server has not answered in time.
func (r refusedCommand) late() bool {
	return errors.Is(r.err, context.DeadlineExceeded) || errors.Is(r.err, context.Canceled)
}
