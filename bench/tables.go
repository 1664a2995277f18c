package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/interlock-go/interlock/bench/peer"
)

// readme has what a user notices, and which runs there are; the folder evidence, beside this one, has the pages of the
// measured tables, and in its readme how each run was measured.
const (
	readme   = "README.md"
	evidence = "../docs/evidence/bench"
)

// run is what one call measures and keeps in one file.
type run struct {
	name      string
	of        string // what -scenario says, "" for files
	minutes   int
	what      string
	scenarios func() []scenario
}

var runs = []run{
	{"files", "", 5, "no server; Linux, macOS or a BSD", fileScenarios},
	{onRedis, onRedis, 10, "a Redis", redisScenarios},
	{onClient, onClient, 2, "a Redis, and the client that a program has already", clientScenarios},
	{onRetain, onRetain, 2, "a Redis, and clients that retain locks", retainScenarios},
	{onDistance, onDistance, 8, "a Redis behind a relay that delays everything", distanceScenarios},
	{onGrowth, onGrowth, 16, "a Redis with 1 to 1,000,000 locks, and 1 to 10,000 waiters", growthScenarios},
	{onCrowds, onCrowds, 10, "a Redis, and thousands that share, watch or wait for a lock", crowdScenarios},
	{onEngines, onEngines, 40, "ZooKeeper, etcd, MariaDB and PostgreSQL on a disk; five Redis", engineScenarios},
}

// Pages of tables, each about what one reader looks for.
const (
	filesPage   = "files.md"
	redisPage   = "redis.md"
	growthPage  = "redis-growth.md"
	crowdsPage  = "redis-crowds.md"
	distantPage = "redis-distance.md"
	enginesPage = "engines.md"
)

// tables are in the order of their pages.
var tables = []table{
	{filesPage, "files", []string{"uncontended", "goroutines", "processes"}},
	{redisPage, "redis-alone", []string{"redis-pair", "redis-keys"}},
	{redisPage, "redis-one-key", []string{"redis-one-process", "redis-processes", "redis-handoff", "redis-herd"}},
	{redisPage, onClient, []string{onClient}},
	{redisPage, onRetain, []string{onRetain}},
	{distantPage, "distance", []string{onDistance}},
	{growthPage, "redis-holds", []string{"redis-holds"}},
	{growthPage, "growth", []string{onGrowth}},
	{crowdsPage, "redis-sharing", []string{"redis-rw", "redis-sem"}},
	{crowdsPage, "crowds", []string{onCrowds}},
	{enginesPage, "zk", []string{"zk-"}},
	{enginesPage, "etcd", []string{"etcd-"}},
	{enginesPage, "mysql", []string{"mysql-"}},
	{enginesPage, "postgres", []string{"postgres-"}},
	{enginesPage, "redlock", []string{"redlock-"}},
}

// runOf returns the run that -scenario names.
func runOf(scenario string) (run, bool) {
	for _, r := range runs {
		if r.of == scenario {
			return r, true
		}
	}
	return run{}, false
}

// namesOfRuns are what -scenario says for them.
func namesOfRuns() (all []string) {
	for _, r := range runs {
		if r.of != "" {
			all = append(all, r.of)
		}
	}
	return all
}

func (r *run) baseline() string { return filepath.Join("baseline", r.name+".txt") }

// writeTables writes what the stored rounds of all runs say: the tables into their pages, what a user notices and the
// list of runs into README.md of a folder, and how they were measured into that of the pages.
func writeTables(folder string) error {
	var list, how [][]string
	var everything rounds
	for _, run := range runs {
		all, from, err := readRounds(filepath.Join(folder, run.baseline()))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		some := all.tablesOf()
		for _, t := range some {
			if err := marksOf(t.name).write(filepath.Join(folder, evidence, t.page), t.markdown(all)); err != nil {
				return err
			}
		}
		list = append(list, []string{run.name, strconv.Itoa(run.minutes), run.what, linksTo(some)})
		how = append(how, []string{run.name, "`" + from.command + "`", from.machine})
		everything = append(everything, all...)
	}
	return errors.Join(
		writeTable(filepath.Join(folder, readme), "runs", []string{"run", "minutes", "what it needs", "tables"}, list),
		marksOf("notices").write(filepath.Join(folder, readme), everything.noticed()),
		writeTable(filepath.Join(folder, evidence, readme), "how", []string{"run", "command", "machine"}, how),
		os.WriteFile(filepath.Join(folder, "peer", readme), []byte(peersText()), 0o644))
}

// writeTable writes a table of words between marks of a file.
func writeTable(file, name string, heads []string, rows [][]string) error {
	return marksOf(name).write(file, markdown(len(heads), heads, rows))
}

// linksTo are the pages of some tables, each once.
func linksTo(some []table) string {
	var links []string
	for _, t := range some {
		link := "[" + strings.TrimSuffix(t.page, ".md") + "](" + evidence + "/" + t.page + ")"
		if !slices.Contains(links, link) {
			links = append(links, link)
		}
	}
	return strings.Join(links, ", ")
}

// notMeasured says why some are no peers.
const notMeasured = `
## Who is not measured

valkeylock is a fork of rueidislock; jefferyjob/go-redislock polls as redsync and bsm do; go-mysql-lock is get-lock.
Nobody can wait for go-zero's RedisLock. goRedisson opens a TCP connection for each attempt, so that a benchmark would
measure connecting. redlease elects a leader, and the other candidates ask every half lease. shiftlock took the lock
and could not read the answer: an error, and the key stayed. cirello-io/pglock polls rows with heartbeats; its floor, a
row for each acquisition, is in advisory-token.
`

// peersText says what each peer does, and who is not one.
func peersText() string {
	var rows [][]string
	for _, p := range peer.All() {
		rows = append(rows, []string{p.Name, p.Does})
	}
	return "# The peers\n\nGenerated by `GOWORK=off go run . -tables` in bench/: what one acquisition and its " +
		"release do. A peer is\na file in this folder and a line in `All`.\n\n" +
		markdown(2, []string{"peer", "what it does"}, rows) +
		notMeasured
}
