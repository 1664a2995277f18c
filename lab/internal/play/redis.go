package play

import (
	"errors"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/interlock-go/interlock/internal/servers"
	"github.com/interlock-go/interlock/lab/internal/story"
)

// Redis is a server of a play, with the lab's own connection to it, of which stories tell only what matters.
type Redis struct {
	*servers.RedisNode
	p    *Play
	conn *servers.RedisConn
}

// Redis starts a Redis.
func (p *Play) Redis() *Redis {
	p.Helper()
	return p.OnRedis(servers.RedisServer(p, nil))
}

// OnRedis returns a server that was started otherwise.
func (p *Play) OnRedis(node *servers.RedisNode) *Redis {
	p.Helper()
	r := &Redis{RedisNode: node, p: p}
	r.Connect()
	return r
}

// Connect connects the lab, again after a restart of the server.
func (r *Redis) Connect() {
	r.p.Helper()
	conn, err := r.Dial(r.p.Context())
	if err != nil {
		r.p.Fatal(err)
	}
	r.conn = conn
	r.p.Cleanup(func() { _ = conn.Close() })
}

// URL returns the server as interlock opens it.
func (r *Redis) URL() string { return "redis://" + r.Addr() }

// Ask sends a command of the lab's own.
func (r *Redis) Ask(args ...string) any {
	r.p.Helper()
	reply, err := r.conn.Do(r.p.Context(), args...)
	if err != nil {
		r.p.Fatalf("redis: %s: %v", strings.Join(args, " "), err)
	}
	return reply
}

// Look sends a command of the lab's own and tells its answer, as one does who looks at the server with redis-cli.
func (r *Redis) Look(args ...string) any {
	r.p.Helper()
	reply := r.Ask(args...)
	answer := Answer(reply, nil)
	if left, ok := reply.(int64); ok && left > 0 && strings.EqualFold(args[0], "TTL") {
		answer = story.Volatile(left, "seconds left") // one less if the machine was busy
	}
	r.p.said("redis-cli", story.Same(Command(args)+"  →  "+answer), &story.Message{To: "Redis", Way: story.Both})
	return reply
}

// LookFor is Look for an answer that differs from run to run: a golden file has its name instead.
func (r *Redis) LookFor(name string, args ...string) any {
	r.p.Helper()
	reply := r.Ask(args...)
	answer := story.Volatile(Answer(reply, nil), name)
	r.p.said("redis-cli", story.Same(Command(args)+"  →  "+answer), &story.Message{To: "Redis", Way: story.Both})
	return reply
}

// Value returns a function for Watch: the value of a key is who holds it.
func (r *Redis) Value(key string) func() string {
	return func() string {
		reply, err := r.conn.Do(r.p.Context(), "GET", key)
		if err != nil { // it does not run any more
			return ""
		}
		s, _ := reply.(string)
		r.seeLease(key)
		return s
	}
}

// seeLease leaves behind how much of a key's lease is left.
func (r *Redis) seeLease(key string) {
	left, err := r.conn.Do(r.p.Context(), "PTTL", key)
	if ms, is := left.(int64); err == nil && is && ms >= story.Forever { // -1: it has no end; -2: there is no such key
		r.p.left.Store(ms)
	}
}

// TimePasses ends the lease of a key, as time would: nobody wants to wait for it.
func (r *Redis) TimePasses(key, en, zh string) {
	r.p.Helper()
	r.EndKey(key)
	r.p.step("", story.Fate, story.Text{EN: en, ZH: zh})
}

// EndKey ends the lease of a key, without a word.
func (r *Redis) EndKey(key string) {
	r.p.Helper()
	r.Ask("PEXPIRE", key, "1")
	for r.Ask("EXISTS", key) != int64(0) { // within a millisecond, by the server's clock
		time.Sleep(time.Millisecond)
	}
}

// Calls returns how often a command was called since the server began, also in scripts.
func (r *Redis) Calls(command string) int {
	r.p.Helper()
	info, err := r.Info(r.p.Context(), "commandstats")
	if err != nil {
		r.p.Fatal(err)
	}
	for _, field := range strings.Split(info["cmdstat_"+command], ",") {
		if n, ok := strings.CutPrefix(field, "calls="); ok {
			return number(n)
		}
	}
	return 0
}

// number returns what stands in a server's answer; what is no number is 0.
func number(text string) int {
	n := 0
	for _, r := range text {
		if r < '0' || r > '9' {
			return 0
		}
		n = n*10 + int(r-'0')
	}
	return n
}

// Scripts returns how many scripts clients have had the server run.
func (r *Redis) Scripts() int {
	r.p.Helper()
	return r.Calls("eval") + r.Calls("evalsha")
}

// Field returns the first field of a hash, which is the owner in some exhibits.
func (r *Redis) Field(key string) string {
	reply, err := r.conn.Do(r.p.Context(), "HKEYS", key)
	if fields, ok := reply.([]any); err == nil && ok && len(fields) > 0 {
		r.seeLease(key)
		return Answer(fields[0], nil)
	}
	return ""
}

// Await returns when the key is there, or not there any more: n is what EXISTS says. It may be called while an actor
// writes its steps down, for which the lab looks at the server too.
func (r *Redis) Await(key string, n int64) { r.p.AwaitAll([]*Redis{r}, key, n) }

// AwaitAll is Await of several servers, each of which has to say so once. It asks all of them by turns: a vote lasts no
// longer than a lease, and would be over at the last while the first is awaited.
func (p *Play) AwaitAll(nodes []*Redis, key string, n int64) {
	p.Helper()
	left := slices.Clone(nodes)
	if !p.until(func() bool {
		left = slices.DeleteFunc(left, func(r *Redis) bool {
			reply, err := r.Do(p.Context(), "EXISTS", key) // on a connection of its own
			if err != nil {
				p.Fatal(err)
			}
			return reply == n
		})
		return len(left) == 0
	}) {
		p.Fatalf("%s: EXISTS %s never said %d", left[0].Addr(), key, n)
	}
}

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
