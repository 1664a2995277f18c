package servers

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// ensembleSize is how many nodes an ensemble has: one may fail.
const ensembleSize = 3

// ZooKeeperEnsemble is three ZooKeepers that elect a leader.
type ZooKeeperEnsemble struct {
	t     testing.TB
	nodes []*ZooKeeperNode
}

// NewZooKeeperEnsemble starts three nodes as o says, and returns when all serve.
func NewZooKeeperEnsemble(t testing.TB, o *ZooKeeperOptions) *ZooKeeperEnsemble {
	t.Helper()
	// The nodes must know each other's ports before any of them runs. Those for clients are chosen by Start.
	ports, err := freePorts(2 * ensembleSize)
	if err != nil {
		t.Fatal(err)
	}
	var others []string
	places := make([]Spec, ensembleSize)
	for i := range places {
		if o != nil && o.Network != nil {
			places[i].At = o.Network.Join(t)
		}
		others = append(others, fmt.Sprintf("server.%d=%s:%d:%d", i+1, places[i].address(), ports[2*i], ports[2*i+1]))
	}
	e := &ZooKeeperEnsemble{t: t}
	for i := range ensembleSize {
		spec := zooSpec(o, others, func(ctx context.Context, s Site) error {
			// A node alone serves nobody, so it is ready when it can be talked to.
			answer, err := askZooKeeper(ctx, s.addr(0), "ruok")
			if err == nil && answer != "imok" {
				err = fmt.Errorf("it says %q", answer)
			}
			return err
		})
		spec.At = places[i].At
		prepare := spec.Prepare
		spec.Prepare = func(ctx context.Context, s Site) error {
			if err := prepare(ctx, s); err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(s.Dir, zooData, "myid"), []byte(strconv.Itoa(i+1)), 0o600)
		}
		e.nodes = append(e.nodes, &ZooKeeperNode{Start(t, spec)})
	}
	e.AwaitReady()
	return e
}

// Nodes returns all nodes, also those that do not run.
func (e *ZooKeeperEnsemble) Nodes() []*ZooKeeperNode { return slices.Clone(e.nodes) }

// Addrs returns host:port of each node.
func (e *ZooKeeperEnsemble) Addrs() []string {
	var all []string
	for _, n := range e.nodes {
		all = append(all, n.Addr())
	}
	return all
}

// Hosts returns the nodes as a URL lists them.
func (e *ZooKeeperEnsemble) Hosts() string { return strings.Join(e.Addrs(), ",") }

// AwaitReady returns when there is one leader and every node that runs and is not stopped serves.
func (e *ZooKeeperEnsemble) AwaitReady() {
	e.t.Helper()
	_ = e.Leader()
}

// Leader returns the node that leads, when every node that runs and is not stopped serves.
func (e *ZooKeeperEnsemble) Leader() *ZooKeeperNode {
	e.t.Helper()
	var leader *ZooKeeperNode
	e.await("the ensemble to agree", func(ctx context.Context) (err error) {
		leader, err = e.led(ctx)
		return err
	})
	return leader
}

// Followers returns the nodes that serve and do not lead.
func (e *ZooKeeperEnsemble) Followers() []*ZooKeeperNode {
	e.t.Helper()
	leader := e.Leader()
	return slices.DeleteFunc(e.Nodes(), func(n *ZooKeeperNode) bool { return n == leader || !n.answers() })
}

// KillLeader kills the node that leads, and returns it when the others have elected another.
func (e *ZooKeeperEnsemble) KillLeader() *ZooKeeperNode {
	e.t.Helper()
	old := e.Leader()
	old.Kill()
	e.AwaitReady()
	return old
}

// Restart kills nodes and starts them again at once, on their data. It returns when they can be talked to, which is
// before they serve.
func (e *ZooKeeperEnsemble) Restart(nodes ...*ZooKeeperNode) {
	e.t.Helper()
	all := make([]*Server, len(nodes))
	for i, n := range nodes {
		all[i] = n.Server
	}
	if err := restartAll(all); err != nil {
		e.t.Fatalf("nodes of an ensemble of ZooKeeper do not start again: %v", err)
	}
}

// At returns the node at host:port, or nil if there is none.
func (e *ZooKeeperEnsemble) At(addr string) *ZooKeeperNode {
	for _, n := range e.nodes {
		if n.Addr() == addr {
			return n
		}
	}
	return nil
}

// led returns the leader, or an error unless all serve that can.
func (e *ZooKeeperEnsemble) led(ctx context.Context) (*ZooKeeperNode, error) {
	var leader *ZooKeeperNode
	for _, n := range e.nodes {
		if !n.answers() {
			continue
		}
		mode, err := zooMode(ctx, n.Addr())
		switch {
		case err != nil:
			return nil, fmt.Errorf("node %s: %w", n.Addr(), err)
		case mode == "leader" && leader != nil:
			return nil, fmt.Errorf("%s and %s both lead", leader.Addr(), n.Addr())
		case mode == "leader":
			leader = n
		}
	}
	if leader == nil {
		return nil, fmt.Errorf("nobody leads %s", e.Hosts())
	}
	return leader, nil
}

func (e *ZooKeeperEnsemble) await(what string, ready func(ctx context.Context) error) {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	if err := poll(ctx, ready); err != nil {
		e.t.Fatalf("waited %v for %s: %v", startTimeout, what, err)
	}
}
