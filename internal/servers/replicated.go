package servers

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
)

// ReplicatedRedis is a primary with replicas that nobody watches over.
type ReplicatedRedis struct {
	fleet
	Primary  *RedisNode
	Replicas []*RedisNode
}

// RedisReplicated starts a primary with n replicas, and returns when all are online and have all of its data.
func RedisReplicated(t testing.TB, n int, o *RedisOptions) *ReplicatedRedis {
	t.Helper()
	m := newRedisMaker(t, o)
	r := &ReplicatedRedis{fleet: fleet{t: t, nodes: m.replicated(n)}}
	r.Primary, r.Replicas = r.nodes[0], r.nodes[1:]
	r.AwaitReplicas()
	return r
}

// AwaitReplicas returns when all replicas that run, and are not stopped, are online and have what the primary has now.
func (r *ReplicatedRedis) AwaitReplicas() {
	r.t.Helper()
	r.await("the replicas", func(ctx context.Context) error {
		replicas := up(r.Replicas)
		if err := follow(ctx, r.Primary, replicas); err != nil {
			return err
		}
		return acknowledge(ctx, r.Primary, len(replicas))
	})
}

// acknowledge returns an error unless n replicas acknowledge a write at once. After it has come online a replica does
// so only when it has reported for the first time, which takes up to a second.
func acknowledge(ctx context.Context, primary *RedisNode, n int) error {
	c, err := primary.Dial(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := c.Do(ctx, "SET", "drivertest:replicated", "1", "PX", "1"); err != nil {
		return err
	}
	acked, err := c.Do(ctx, "WAIT", strconv.Itoa(n), "50")
	if err == nil && acked != int64(n) {
		err = fmt.Errorf("%v of %d replicas acknowledge", acked, n)
	}
	return err
}

// replicationSettings make replicas follow at once instead of after some seconds.
func replicationSettings() redisSettings {
	return redisSettings{
		"repl-diskless-sync": "yes", "repl-diskless-sync-delay": "0", "repl-ping-replica-period": "1",
		"repl-timeout": "10",
	}
}

// replicated starts a primary and its replicas, in this order.
func (m *redisMaker) replicated(n int) []*RedisNode {
	m.t.Helper()
	primary := m.start(replicationSettings())
	nodes := []*RedisNode{primary}
	of, port, _ := net.SplitHostPort(primary.Addr())
	for range n {
		set := replicationSettings()
		set["replicaof"] = of + " " + port
		nodes = append(nodes, m.start(set))
	}
	return nodes
}

// follow returns an error unless all replicas are online and have what primary has now.
func follow(ctx context.Context, primary *RedisNode, replicas []*RedisNode) error {
	info, err := primary.Info(ctx, "replication")
	if err != nil {
		return err
	}
	if err := expect(info, "role", "master"); err != nil {
		return err
	}
	offset, err := strconv.ParseInt(info["master_repl_offset"], 10, 64)
	if err != nil {
		return err
	}
	for _, replica := range replicas {
		if err := online(info, replica); err != nil {
			return err
		}
		// The primary knows only what a replica has said within the last second, so the replica is asked itself.
		if err := replica.has(ctx, primary, offset); err != nil {
			return fmt.Errorf("replica %s: %w", replica.Addr(), err)
		}
	}
	return nil
}

// online returns an error unless the primary's INFO has the replica, as in
// slave0:ip=127.0.0.1,port=6380,state=online,offset=14,lag=1.
func online(info map[string]string, replica *RedisNode) error {
	of, port, err := net.SplitHostPort(replica.Addr())
	if err != nil {
		return err
	}
	for name, about := range info {
		if strings.HasPrefix(name, "slave") && strings.HasPrefix(about, "ip="+of+",port="+port+",state=online,") {
			return nil
		}
	}
	return fmt.Errorf("replica %s is not online", replica.Addr())
}

// has returns an error unless n is a replica of primary that has its stream up to offset.
func (n *RedisNode) has(ctx context.Context, primary *RedisNode, offset int64) error {
	info, err := n.Info(ctx, "replication")
	if err != nil {
		return err
	}
	if of := net.JoinHostPort(info["master_host"], info["master_port"]); of != primary.Addr() {
		return fmt.Errorf("it is a %s of %s, not of %s", info["role"], of, primary.Addr())
	}
	if err := expect(info, "master_link_status", "up"); err != nil {
		return err
	}
	at, err := strconv.ParseInt(info["slave_repl_offset"], 10, 64)
	if err == nil && at < offset {
		err = fmt.Errorf("it is at %d of %d", at, offset)
	}
	return err
}
