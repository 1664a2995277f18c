package experiment

import (
	"slices"
	"strconv"
	"strings"

	"github.com/interlock-go/interlock/internal/servers"
	"github.com/interlock-go/interlock/lab/exhibit"
	"github.com/interlock-go/interlock/lab/internal/play"
)

// nodes is how many servers Redlock uses.
const nodes = 5

// fiveNodes starts five servers that know nothing of each other.
func fiveNodes(p *play.Play) []*play.Redis {
	p.Helper()
	all := make([]*play.Redis, nodes)
	for i := range all {
		all[i] = p.Redis()
		p.Watch(label(i), all[i].Value(key))
	}
	return all
}

// fiveMore starts five servers for interlock's Redlock.
func fiveMore(p *play.Play) []*play.Redis {
	p.Helper()
	all := make([]*play.Redis, nodes)
	for i := range all {
		all[i] = p.Redis()
		// The mark of a server that has been in use for longer than the longest lease, so that it may vote. A driver
		// would set it on five new servers only if it reaches all of them at once, which a busy machine may not let it.
		all[i].Ask("EVAL",
			`return redis.call('SET', KEYS[1], string.match(redis.call('INFO', 'server'), 'run_id:(%w+)'))`, "1",
			"interlock:redlock")
		p.WatchNode(label(i), all[i], key)
	}
	return all
}

// redlock is the address of servers as interlock opens them. A slow answer of a busy machine is not a dead node.
func redlock(addrs []string) string {
	return "redlock://" + strings.Join(addrs, ",") + "?node-timeout=10s"
}

// addrs are the addresses of servers.
func addrs(nodes []*play.Redis) []string {
	var all []string
	for _, node := range nodes {
		all = append(all, node.Addr())
	}
	return all
}

// behind puts cables before those servers that reachable does not name, and returns all addresses
// and what cuts the cables.
func behind(p *play.Play, nodes []*play.Redis, reachable ...int) (all []string, cut func()) {
	p.Helper()
	var cables []*servers.Proxy
	all = addrs(nodes)
	for i := range all {
		if !slices.Contains(reachable, i+1) {
			cable := servers.NewProxy(p, all[i])
			all[i] = cable.Addr()
			cables = append(cables, cable)
		}
	}
	return all, func() {
		for _, cable := range cables {
			cable.Refuse()
			cable.Reset()
		}
	}
}

func label(i int) string { return "node " + strconv.Itoa(i+1) }

// toAll connects an actor to servers.
func toAll(a *play.Actor, nodes []*play.Redis) []exhibit.Conn {
	var all []exhibit.Conn
	for i, node := range nodes {
		all = append(all, a.Dial(node.Addr(), label(i)))
	}
	return all
}
