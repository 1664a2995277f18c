package servers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	sentinelName  = "interlock"
	sentinelCount = 3

	// sentinelQuorum is how many Sentinels must agree that the primary is down.
	sentinelQuorum = 2
)

// SentinelRedis is a primary with replicas that three Sentinels watch over.
type SentinelRedis struct {
	fleet
	sentinels []*RedisNode
}

// RedisSentinel starts a primary, n replicas and three Sentinels, and returns when the Sentinels know everybody and
// each other. A primary that is silent for a second is replaced.
func RedisSentinel(t testing.TB, n int, o *RedisOptions) *SentinelRedis {
	t.Helper()
	m := newRedisMaker(t, o)
	s := &SentinelRedis{fleet: fleet{t: t, nodes: m.replicated(n)}}
	for range sentinelCount {
		s.sentinels = append(s.sentinels, m.sentinel(s.nodes[0]))
	}
	s.AwaitReady()
	return s
}

// Hang stops everything, the Sentinels too, as SIGSTOP does, until resume is called.
func (s *SentinelRedis) Hang() (resume func()) { return stopAll(slices.Concat(s.sentinels, s.nodes)) }

// Name returns the name under which the Sentinels know the primary.
func (s *SentinelRedis) Name() string { return sentinelName }

// Sentinels returns host:port of each Sentinel. They have no password.
func (s *SentinelRedis) Sentinels() []string { return addrs(s.sentinels) }

// SentinelNodes returns the Sentinels, also those that do not run.
func (s *SentinelRedis) SentinelNodes() []*RedisNode { return slices.Clone(s.sentinels) }

// Primary returns the server that the Sentinels call the primary. It waits until all that run name the same one.
func (s *SentinelRedis) Primary() *RedisNode {
	s.t.Helper()
	var primary *RedisNode
	s.await("the Sentinels to agree", func(ctx context.Context) (err error) {
		primary, err = s.agreed(ctx)
		return err
	})
	return primary
}

// KillPrimary kills the primary, and returns the new one when it is in office.
func (s *SentinelRedis) KillPrimary() *RedisNode {
	s.t.Helper()
	old := s.Primary()
	old.Kill()
	return s.AwaitFailover(old)
}

// Failover has the Sentinels replace the primary, which goes on as a replica, and returns the new one when it is in
// office and the others follow it.
func (s *SentinelRedis) Failover() *RedisNode {
	s.t.Helper()
	old := s.Primary()
	s.await("a Sentinel to begin the failover", s.begin)
	s.AwaitFailover(old)
	s.AwaitReady()
	return s.Primary()
}

// undecided is after how long AwaitFailover has a Sentinel begin a failover without having been elected. On a machine
// under load Sentinels may come to nothing again and again: the votes are split, or no replica has been heard lately
// enough, and each time they wait for twice the failover-timeout.
const undecided = 8 * time.Second

// AwaitFailover returns the new primary when the Sentinels have put one in the place of old, and it agrees. If they
// cannot decide on one, it decides for them.
func (s *SentinelRedis) AwaitFailover(old *RedisNode) *RedisNode {
	s.t.Helper()
	var primary *RedisNode
	pushed := time.Now()
	s.await("a new primary", func(ctx context.Context) (err error) {
		primary, err = s.agreed(ctx)
		if err == nil && primary == old {
			err = errStill(old)
		}
		if err != nil && time.Since(pushed) > undecided {
			pushed = time.Now()
			err = errors.Join(err, s.begin(ctx))
		}
		return err
	})
	return primary
}

// begin has a Sentinel begin a failover. An error says that one is not over yet, or that no
// replica has been seen lately.
func (s *SentinelRedis) begin(ctx context.Context) error {
	_, err := up(s.sentinels)[0].Do(ctx, "SENTINEL", "FAILOVER", sentinelName)
	return err
}

// RestartDead starts again what does not run, and returns when everybody is in place: what was the primary is a replica
// of the new one, if there is a new one.
func (s *SentinelRedis) RestartDead() {
	s.t.Helper()
	restart(s.nodes)
	restart(s.sentinels)
	s.AwaitReady()
}

// AwaitReady returns when the servers and Sentinels that run know each other, and the replicas follow the primary and
// have what it has.
func (s *SentinelRedis) AwaitReady() {
	s.t.Helper()
	s.quicken()
	s.await("the Sentinels", s.ready)
}

// sentinel starts one that watches over primary.
func (m *redisMaker) sentinel(primary *RedisNode) *RedisNode {
	m.t.Helper()
	n := &RedisNode{certs: m.certs}
	spec := n.redisSpec("redis")
	spec.At = m.join()
	spec.Args = func(Site) []string { return []string{redisConf, "--sentinel"} }
	spec.Prepare = func(_ context.Context, s Site) error {
		plain := RedisOptions{}
		set := plain.settings(s, m.certs)
		delete(set, "save")
		delete(set, "appendonly")
		of, port, err := net.SplitHostPort(primary.Addr())
		if err != nil {
			return err
		}
		lines := []string{fmt.Sprintf("sentinel monitor %s %s %s %d", sentinelName, of, port, sentinelQuorum)}
		for _, line := range [][2]string{
			{"down-after-milliseconds", "1000"}, // a loaded machine runs nobody for half a second
			// An election has so long, and so has the promoted server, which the Sentinel hears once a second.
			// After one that came to nothing the next begins twice this later.
			{"failover-timeout", "2000"},
			{"parallel-syncs", "10"},
			{"auth-user", primary.user},
			{"auth-pass", primary.password},
		} {
			if line[1] != "" {
				lines = append(lines, fmt.Sprintf("sentinel %s %s %s", line[0], sentinelName, quoteIfNeeded(line[1])))
			}
		}
		return set.write(s.Dir, lines...)
	}
	n.Server = Start(m.t, spec)
	return n
}

// quoteIfNeeded returns value as it stands in redis.conf.
func quoteIfNeeded(value string) string {
	if strings.ContainsAny(value, " \"'\\") {
		return strconv.Quote(value)
	}
	return value
}
