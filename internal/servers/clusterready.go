package servers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
)

// ask sends a command to the first node that runs.
func (c *ClusterRedis) ask(ctx context.Context, command ...string) (any, error) {
	running := up(c.nodes)
	if len(running) == 0 {
		return nil, errors.New("no node runs")
	}
	return running[0].Do(ctx, command...)
}

// agreed returns the owner of a slot that all nodes that run name.
func (c *ClusterRedis) agreed(ctx context.Context, slot int) (*RedisNode, error) {
	var owner *RedisNode
	for _, n := range up(c.nodes) {
		view, err := c.view(ctx, n)
		if err != nil {
			return nil, err
		}
		named := c.At(view.owner(slot))
		if named == nil {
			return nil, fmt.Errorf("%s knows no owner of slot %d", n.Addr(), slot)
		}
		if owner != nil && named != owner {
			return nil, fmt.Errorf("some name %s, others %s", owner.Addr(), named.Addr())
		}
		owner = named
	}
	if owner == nil {
		return nil, errors.New("no node runs")
	}
	return owner, nil
}

// ok returns an error unless every node that runs says that the cluster is ok.
func (c *ClusterRedis) ok(ctx context.Context) error {
	for _, n := range up(c.nodes) {
		reply, err := n.Do(ctx, "CLUSTER", "INFO")
		if err != nil {
			return err
		}
		info := redisFields(reply)
		if err := errors.Join(
			expect(info, "cluster_state", "ok"),
			expect(info, "cluster_slots_ok", clusterSlots),
			expect(info, "cluster_known_nodes", len(c.nodes)),
		); err != nil {
			return fmt.Errorf("node %s: %w", n.Addr(), err)
		}
	}
	return nil
}

// sound returns an error unless the nodes that run see each other in the same places, and replicas have what their
// primaries have.
func (c *ClusterRedis) sound(ctx context.Context) error {
	var first clusterView
	for _, n := range up(c.nodes) {
		view, err := c.view(ctx, n)
		if err != nil {
			return err
		}
		for _, entry := range view {
			if other := c.At(entry.addr); other != nil && other.answers() && !entry.sound() {
				return fmt.Errorf("%s sees %s as %v", n.Addr(), entry.addr, entry.flags)
			}
		}
		if first == nil {
			first = view
		}
		// A primary that comes back does not know at once that it was replaced.
		if view.places() != first.places() {
			return fmt.Errorf("%s does not see what others see", n.Addr())
		}
		if primary := view.primaryOf(c.ids[n]); primary != "" {
			if err := c.inSync(ctx, n, primary); err != nil {
				return err
			}
		}
		if err := c.lists(ctx, n, view); err != nil {
			return err
		}
	}
	return nil
}

// lists returns an error unless the table of slots that n gives to clients has all replicas that run. It
// leaves out one that has not told it yet how far it is, and a client that reads the table then does not know
// it when its primary hangs.
func (c *ClusterRedis) lists(ctx context.Context, n *RedisNode, view clusterView) error {
	reply, err := n.Do(ctx, "CLUSTER", "SLOTS")
	if err != nil {
		return err
	}
	table := fmt.Sprint(reply) // of ranges: first, last, and for each node a list that begins with its host and port
	for _, replica := range up(c.nodes) {
		host, port, _ := net.SplitHostPort(replica.Addr())
		if view.primaryOf(c.ids[replica]) != "" && !strings.Contains(table, "["+host+" "+port+" ") {
			return fmt.Errorf("%s does not tell clients of %s", n.Addr(), replica.Addr())
		}
	}
	return nil
}

// inSync returns an error unless the replica has what its primary has now.
func (c *ClusterRedis) inSync(ctx context.Context, replica *RedisNode, primary string) error {
	n := c.At(primary)
	if n == nil {
		return fmt.Errorf("%s follows %q, which is none of ours", replica.Addr(), primary)
	}
	info, err := n.Info(ctx, "replication")
	if err != nil {
		return err
	}
	offset, err := strconv.ParseInt(info["master_repl_offset"], 10, 64)
	if err != nil {
		return err
	}
	return replica.has(ctx, n, offset)
}
