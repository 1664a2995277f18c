package main

import "strings"

// notice is a row of what a user notices: one number of interlock beside that of other ways to lock.
type notice struct {
	does     string // what is done
	scenario string
	unit     string
	own      string
	others   string // names of peers
}

// onRedisToo are a floor and two libraries.
const onRedisToo = "blpop redsync rueidislock"

// notices are the rows of README.md, a few of each engine. The measured tables have all numbers.
var notices = []notice{
	{"file: lock and unlock, alone", "uncontended", perOp, "interlock-file", "flock flock-kept"},
	{"file: 8 processes, no work inside", "processes/hold=0s", rate, "interlock-file", "flock flock-kept"},
	{"file: 8 processes, 20 µs of work inside", "processes/hold=20µs", rate, "interlock-file", "flock flock-kept"},
	{"file: 256 goroutines of one process", "goroutines/256", rate, "interlock-file", "flock sync.Mutex"},

	{"Redis: lock and unlock, alone", "redis-pair/anywhere", perOp, "interlock-redis", "set-nx redsync rueidislock"},
	{"Redis: 8 processes", "redis-processes/8x1", rate, "interlock-redis", onRedisToo},
	{"Redis: 256 goroutines of one process", "redis-one-process/256", rate, "interlock-redis", onRedisToo},
	{"Redis: hand-off to another process, median", "redis-handoff", p50, "interlock-redis", onRedisToo},
	{"Redis: 1,000 clients, each served once", "redis-herd", perHerd, "interlock-redis", onRedisToo},
	{"Redis: renewing 10,000 locks", "redis-holds", commandsASecond, "interlock-redis", "redsync rueidislock"},
	{"Redis: 64 goroutines, 95 % readers", "redis-rw", rate, "interlock-redis-rw", "interlock-redis"},
	{"Redis: one lock again, with Retain", "redis-retain/pair", perOp, "interlock-redis-retain", "interlock-redis"},

	{"ZooKeeper: lock and unlock, alone", "zk-alone", perOp, "interlock-zk", "zk.Lock"},
	{"ZooKeeper: hand-off, median", "zk-handoff", p50, "interlock-zk", "zk.Lock"},
	{"etcd: lock and unlock, alone", "etcd-alone", perOp, "interlock-etcd", "concurrency.Mutex"},
	{"etcd: hand-off, median", "etcd-handoff", p50, "interlock-etcd", "concurrency.Mutex"},
	{"MariaDB: lock and unlock, alone", "mysql-alone", perOp, "interlock-mysql", "get-lock get-lock-token"},
	{"MariaDB: 8 processes", "mysql-processes/8x1", rate, "interlock-mysql", "get-lock get-lock-token"},
	{"PostgreSQL: lock and unlock, alone", "postgres-alone", perOp, "interlock-postgres", "advisory advisory-token"},
	{"PostgreSQL: 8 processes", "postgres-processes/8x1", rate, "interlock-postgres", "advisory advisory-token"},
	{"Redlock: lock and unlock, alone", "redlock-alone", perOp, "interlock-redlock", "redsync-five"},
	{"Redlock: 8 processes", "redlock-processes/8x1", rate, "interlock-redlock", "redsync-five"},
	{"Redlock: hand-off, median", "redlock-handoff", p50, "interlock-redlock", "redsync-five"},
}

// moreIsBetter are the units of which a larger number is the better one; of all others it is the smaller one.
var moreIsBetter = map[string]bool{rate: true}

// loses is the factor below which interlock is called worse: within a tenth, single runs differ.
const loses = 0.9

var noticeHeads = []string{"what is done", "interlock", "the others, and how many times better interlock is"}

// noticed writes the rows that were measured.
func (r rounds) noticed() string {
	var rows [][]string
	for i := range notices {
		n := &notices[i]
		if own := r.number(n.scenario, n.own, n.unit); own != "" {
			rows = append(rows, []string{n.does, n.labelled(own), r.compared(n)})
		}
	}
	return markdown(len(noticeHeads), noticeHeads, rows)
}

// labelled adds the unit to a number that does not have it.
func (n *notice) labelled(number string) string {
	switch n.unit {
	case rate, commandsASecond:
		return number + " " + units[n.unit].head
	default:
		return number
	}
}

// compared are the others with their numbers and, in brackets, the factors: bold where interlock loses.
func (r rounds) compared(n *notice) string {
	var cells []string
	for other := range strings.FieldsSeq(n.others) {
		factor := r.better(n, other)
		text := r.limit(n.scenario, other, n.unit) + times(factor)
		if factor < loses {
			text = "**" + text + "**"
		}
		cells = append(cells, other+" "+r.number(n.scenario, other, n.unit)+" ("+text+")")
	}
	return strings.Join(cells, ", ")
}

// better is by which factor interlock's number is better than the other one.
func (r rounds) better(n *notice, other string) float64 {
	q := r.ratio(n.scenario, n.own, other, n.unit).of
	if moreIsBetter[n.unit] {
		return q
	}
	return 1 / q
}
