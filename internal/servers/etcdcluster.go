package servers

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
)

// EtcdNodes is a cluster of etcd.
type EtcdNodes struct {
	nodes []*EtcdNode
}

// EtcdCluster starts a cluster of that many nodes as o says, and returns when it has a leader; nil is the zero value.
func EtcdCluster(t testing.TB, size int, o *EtcdOptions) *EtcdNodes {
	t.Helper()
	first := newEtcdNode(t, o, nil)
	spec := first.etcdSpec()
	binary := spec.find(t)
	var err error
	for range attempts {
		c := &EtcdNodes{}
		for range size {
			c.nodes = append(c.nodes, newEtcdNode(t, o, first.certs))
		}
		if err = c.start(t, binary); err == nil {
			c.nodes[0].protect(t)
			return c
		}
	}
	t.Fatalf("a cluster of etcd does not start: %v", err)
	return nil
}

// start starts all nodes at once: none of them serves before most of them run.
func (c *EtcdNodes) start(t testing.TB, binary string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	ports, err := freePorts(2 * len(c.nodes))
	if err != nil {
		return err
	}
	var members []string
	for i, n := range c.nodes {
		spec := n.etcdSpec()
		if n.opts.Network != nil {
			spec.At = n.opts.Network.Join(t)
		}
		site := Site{Binary: binary, Dir: spec.Disk.folder(t), Host: spec.address(), Ports: ports[2*i : 2*i+2]}
		n.Server = &Server{Site: site, t: t, spec: spec, log: new(capture)}
		members = append(members, fmt.Sprintf("node%d=%s", i, n.peerURL(site)))
	}
	errs := make([]error, len(c.nodes))
	var all sync.WaitGroup
	for i, n := range c.nodes {
		n.spec.Args = func(s Site) []string { return n.args(s, fmt.Sprint("node", i), strings.Join(members, ",")) }
		all.Go(func() { errs[i] = n.launch(ctx) })
	}
	all.Wait()
	for _, n := range c.nodes {
		if n.current() != nil {
			t.Cleanup(func() { n.endWith(t) })
		}
	}
	for i, err := range errs {
		if err != nil {
			for _, n := range c.nodes {
				if n.current() != nil {
					n.Kill()
				}
			}
			return fmt.Errorf("node %d: %w", i, err)
		}
	}
	return nil
}

// endWith kills the node at the end of t.
func (n *EtcdNode) endWith(t testing.TB) {
	n.Kill()
	if t.Failed() {
		t.Logf("the log of etcd on %s ends with:\n%s", n.Addr(), n.log)
	}
}

// Restart kills nodes and starts them again at once, on their data: none of them serves before most of the cluster
// runs. Without nodes it restarts all.
func (c *EtcdNodes) Restart(t testing.TB, nodes ...*EtcdNode) {
	t.Helper()
	if len(nodes) == 0 {
		nodes = c.nodes
	}
	all := make([]*Server, len(nodes))
	for i, n := range nodes {
		all[i] = n.Server
	}
	if err := restartAll(all); err != nil {
		t.Fatalf("a cluster of etcd does not start again: %v", err)
	}
}

// Nodes returns the nodes.
func (c *EtcdNodes) Nodes() []*EtcdNode { return c.nodes }

// Addrs returns the host:port of every node.
func (c *EtcdNodes) Addrs() []string {
	addrs := make([]string, len(c.nodes))
	for i, n := range c.nodes {
		addrs[i] = n.Addr()
	}
	return addrs
}

// Leader returns the node that leads, as the nodes that answer see it. It waits until they agree on one.
func (c *EtcdNodes) Leader(t testing.TB) *EtcdNode {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	var leader *EtcdNode
	err := poll(ctx, func(ctx context.Context) (err error) {
		leader, err = c.leader(ctx)
		return err
	})
	if err != nil {
		t.Fatalf("etcd: %v", err)
	}
	return leader
}

// MoveLeader has the leader hand its office to another node, and returns when all see that one lead.
func (c *EtcdNodes) MoveLeader(t testing.TB, to *EtcdNode) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	err := poll(ctx, func(ctx context.Context) error {
		leader, err := c.leader(ctx)
		if err != nil || leader == to {
			return err
		}
		status, err := to.Do(ctx, "maintenance/status", map[string]any{})
		if err != nil {
			return err
		}
		if _, err = leader.Do(ctx, "maintenance/transfer-leadership",
			map[string]any{"targetID": memberOf(status)}); err != nil {
			return err
		}
		return fmt.Errorf("%s was to hand its office over", leader.Addr())
	})
	if err != nil {
		t.Fatalf("etcd: %v", err)
	}
}

// memberOf is the number of the node that has given the answer.
func memberOf(answer map[string]any) string {
	header, _ := answer["header"].(map[string]any)
	return fmt.Sprint(header["member_id"])
}

func (c *EtcdNodes) leader(ctx context.Context) (*EtcdNode, error) {
	ids, leads := map[string]*EtcdNode{}, map[string]int{}
	for _, n := range c.nodes {
		if !n.answers() {
			continue
		}
		status, err := n.Do(ctx, "maintenance/status", map[string]any{})
		if err != nil {
			return nil, err
		}
		ids[memberOf(status)] = n
		leads[fmt.Sprint(status["leader"])]++
	}
	for id, votes := range leads {
		if n := ids[id]; n != nil && votes == len(ids) && votes > len(c.nodes)/2 {
			return n, nil
		}
	}
	return nil, fmt.Errorf("of %d nodes that answer, these are taken for the leader: %v", len(ids), leads)
}
