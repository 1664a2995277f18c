package play

import (
	"errors"
	"net"
	"time"

	"github.com/interlock-go/interlock/internal/servers"
	"github.com/interlock-go/interlock/lab/internal/story"
)

// Pair is a primary and its replica, with a cable between them that can be cut.
type Pair struct {
	Primary, Replica *Redis

	p     *Play
	cable *servers.Proxy
}

// Pair starts a primary and a replica that follows it.
func (p *Play) Pair() *Pair {
	p.Helper()
	config := map[string]string{"repl-diskless-sync-delay": "0", "repl-ping-replica-period": "1"}
	primary := p.OnRedis(servers.RedisServer(p, &servers.RedisOptions{Config: config}))
	cable := servers.NewProxy(p, primary.Addr())
	host, port, err := net.SplitHostPort(cable.Addr())
	if err != nil {
		p.Fatal(err)
	}
	config = map[string]string{"replicaof": host + " " + port}
	replica := p.OnRedis(servers.RedisServer(p, &servers.RedisOptions{Config: config}))
	pair := &Pair{Primary: primary, Replica: replica, p: p, cable: cable}
	pair.await()
	return pair
}

// await returns when a write of the primary is acknowledged by the replica.
func (c *Pair) await() {
	c.p.Helper()
	for end := time.Now().Add(patience); ; {
		c.Primary.Ask("SET", "lab:replicated", "1", "PX", "1")
		if c.Primary.Ask("WAIT", "1", "50") == int64(1) {
			return
		}
		if time.Now().After(end) {
			c.p.Fatal(errors.New("the replica does not follow its primary"))
		}
	}
}

// Cut cuts the cable: what the primary sends from now on never arrives.
func (c *Pair) Cut() {
	c.p.Helper()
	c.cable.BlackHole(servers.BothWays)
	c.p.step("", story.Fate, story.T("The replica falls behind: the lab holds back what the primary sends it.",
		"副本落后了：实验扣住了主节点发给它的数据。"))
}

// FailOver kills the primary and makes the replica its successor.
func (c *Pair) FailOver() {
	c.p.Helper()
	c.Primary.Kill()
	c.Replica.Ask("REPLICAOF", "NO", "ONE")
	c.p.step("", story.Fate,
		story.T("The primary is killed (kill -9). The replica is promoted.", "主节点被杀死（kill -9），副本升为主节点。"))
}
