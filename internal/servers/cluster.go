package servers

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net"
	"strconv"
	"testing"
	"time"
)

const (
	// clusterSlots is how many slots every Redis Cluster has.
	clusterSlots = 16384

	// clusterTimeout is cluster-node-timeout, in milliseconds: a node that is silent for this long is replaced.
	clusterTimeout = "1000"
)

// ClusterRedis is a Redis Cluster.
type ClusterRedis struct {
	fleet
	ids map[*RedisNode]string
}

// RedisCluster starts a Cluster of primaries that share the slots evenly, each with that many replicas,
// and returns when every node knows all and says that the cluster is ok. A node that is silent for a
// second is replaced by a replica.
func RedisCluster(t testing.TB, primaries, replicas int, o *RedisOptions) *ClusterRedis {
	t.Helper()
	m := newRedisMaker(t, o)
	c := &ClusterRedis{fleet: fleet{t: t}, ids: map[*RedisNode]string{}}
	for range primaries * (1 + replicas) {
		c.nodes = append(c.nodes, m.clusterNode())
	}
	c.share(primaries)
	c.await("the nodes to become a cluster", c.introduce)
	c.follow(primaries)
	c.AwaitReady()
	return c
}

// clusterNode starts a node that knows no other yet.
func (m *redisMaker) clusterNode() *RedisNode {
	m.t.Helper()
	set := replicationSettings()
	maps.Copy(set, redisSettings{
		"cluster-enabled": "yes", "cluster-config-file": "nodes.conf", "cluster-node-timeout": clusterTimeout,
		// A replica takes over however long it has heard nothing: tests kill a primary when they like.
		"cluster-replica-validity-factor": "0",
	})
	return m.start(set)
}

// introduce makes every pair of nodes meet, instead of waiting until they hear of each other.
func (c *ClusterRedis) introduce(ctx context.Context) error {
	for i, n := range c.nodes {
		id, err := n.Do(ctx, "CLUSTER", "MYID")
		if err != nil {
			return err
		}
		c.ids[n], _ = id.(string)
		for _, other := range c.nodes[i+1:] {
			of, port, err := net.SplitHostPort(other.Addr())
			if err != nil {
				return err
			}
			if _, err := n.Do(ctx, "CLUSTER", "MEET", of, port); err != nil {
				return err
			}
		}
	}
	return nil
}

// share gives each of the first nodes its part of the slots, and all nodes different epochs, which is
// possible only while they know no other. Of two nodes with the same epoch, which may claim a slot would be
// open until they have found out.
func (c *ClusterRedis) share(primaries int) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	for i, n := range c.nodes {
		if _, err := n.Do(ctx, "CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i+1)); err != nil {
			c.t.Fatalf("the epoch of node %d: %v", i, err)
		}
		if i >= primaries {
			continue
		}
		command := []string{"CLUSTER", "ADDSLOTS"}
		for slot := clusterSlots * i / primaries; slot < clusterSlots*(i+1)/primaries; slot++ {
			command = append(command, strconv.Itoa(slot))
		}
		if _, err := n.Do(ctx, command...); err != nil {
			c.t.Fatalf("the slots of node %d: %v", i, err)
		}
	}
}

// follow makes the nodes after the first replicas of these in turn.
func (c *ClusterRedis) follow(primaries int) {
	c.t.Helper()
	for i, n := range c.nodes[primaries:] {
		c.await("a node to become a replica", func(ctx context.Context) error {
			_, err := n.Do(ctx, "CLUSTER", "REPLICATE", c.ids[c.nodes[i%primaries]])
			return err // it has not heard of that node yet
		})
	}
}

// Slot returns the slot of a key.
func (c *ClusterRedis) Slot(key string) int {
	c.t.Helper()
	slot := int64(-1)
	c.await("a node that runs", func(ctx context.Context) error {
		reply, err := c.ask(ctx, "CLUSTER", "KEYSLOT", key)
		slot, _ = reply.(int64)
		return err
	})
	return int(slot)
}

// Owner returns the primary that all nodes that run say has the slot. It waits until they agree.
func (c *ClusterRedis) Owner(slot int) *RedisNode {
	c.t.Helper()
	var owner *RedisNode
	c.await("the nodes to agree on an owner", func(ctx context.Context) (err error) {
		owner, err = c.agreed(ctx, slot)
		return err
	})
	return owner
}

// Hang stops all nodes, as SIGSTOP does, until resume is called.
func (c *ClusterRedis) Hang() (resume func()) { return stopAll(c.nodes) }

// stopAll stops servers until resume is called.
func stopAll(nodes []*RedisNode) (resume func()) {
	for _, n := range nodes {
		n.Stop()
	}
	return func() {
		for _, n := range nodes {
			n.Cont()
		}
	}
}

// KillOwner kills the primary of a slot, and returns it. See [ClusterRedis.AwaitFailover].
func (c *ClusterRedis) KillOwner(slot int) *RedisNode {
	c.t.Helper()
	owner := c.Owner(slot)
	owner.Kill()
	return owner
}

// AwaitFailover returns the new primary of a slot when a replica has taken it over from old and
// the cluster is ok again.
func (c *ClusterRedis) AwaitFailover(slot int, old *RedisNode) *RedisNode {
	c.t.Helper()
	var owner *RedisNode
	c.await("a replica to take over", func(ctx context.Context) (err error) {
		owner, err = c.agreed(ctx, slot)
		if err == nil && owner == old {
			err = errStill(old)
		}
		if err == nil {
			err = c.ok(ctx)
		}
		return err
	})
	return owner
}

// Failover makes a replica of the slot's primary its successor, without any loss, and returns it when it is in office.
func (c *ClusterRedis) Failover(slot int) *RedisNode {
	c.t.Helper()
	old := c.Owner(slot)
	var begun time.Time
	c.await("a replica to take over in order", func(ctx context.Context) error {
		owner, err := c.agreed(ctx, slot)
		if err == nil && owner != old {
			return nil
		}
		if time.Since(begun) < inVain {
			return cmp.Or(err, errStill(old))
		}
		if err = c.begin(ctx, old); err == nil {
			begun = time.Now()
			err = errStill(old)
		}
		return err
	})
	return c.AwaitFailover(slot, old)
}

// inVain is after how long a failover that was begun has come to nothing. A node gives up after five seconds, and
// nobody votes twice for a successor of one primary within two of cluster-node-timeout.
const inVain = 6 * time.Second

// begin has a replica ask to become the successor of its primary.
func (c *ClusterRedis) begin(ctx context.Context, old *RedisNode) error {
	view, err := c.view(ctx, old)
	if err != nil {
		return err
	}
	for _, entry := range view {
		if n := c.At(entry.addr); n != nil && n.answers() && entry.primary == c.ids[old] {
			_, err := n.Do(ctx, "CLUSTER", "FAILOVER")
			return err
		}
	}
	return errors.New("it has no replica")
}

// RestartDead starts again what does not run, and returns when every node is in place.
func (c *ClusterRedis) RestartDead() {
	c.t.Helper()
	restart(c.nodes)
	c.AwaitReady()
}

// AwaitReady returns when every node that runs knows all nodes, sees all that run as sound and says that the cluster is
// ok, and the replicas follow their primaries.
func (c *ClusterRedis) AwaitReady() {
	c.t.Helper()
	c.await("the cluster", func(ctx context.Context) error {
		if err := c.ok(ctx); err != nil {
			return err
		}
		return c.sound(ctx)
	})
}
