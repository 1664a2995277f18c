package experiment

import (
	"strconv"

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

func label(i int) string { return "node " + strconv.Itoa(i+1) }

// toAll connects an actor to servers.
func toAll(a *play.Actor, nodes []*play.Redis) []exhibit.Conn {
	var all []exhibit.Conn
	for i, node := range nodes {
		all = append(all, a.Dial(node.Addr(), label(i)))
	}
	return all
}
