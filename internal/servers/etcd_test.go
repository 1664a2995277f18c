package servers_test

import (
	"context"
	"encoding/base64"
	"testing"
	"time"

	"github.com/interlock-go/interlock/internal/servers"
)

func etcdPut(ctx context.Context, n *servers.EtcdNode) error {
	key := base64.StdEncoding.EncodeToString([]byte("key"))
	_, err := n.Do(ctx, "kv/put", map[string]any{"key": key, "value": key})
	return err
}

func TestEtcd_ServesAndKeepsItsDataOverARestart(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	n := servers.EtcdServer(t, &servers.EtcdOptions{Password: "secret", TLS: true})
	if err := etcdPut(ctx, n); err != nil {
		t.Fatal(err)
	}
	n.Restart()
	found, err := n.Do(ctx, "kv/range", map[string]any{"key": base64.StdEncoding.EncodeToString([]byte("key"))})
	if err != nil || found["count"] != "1" {
		t.Errorf("after a restart: %v, %v", found, err)
	}
	if puts, err := n.Metric(ctx, "etcd_server_proposals_applied_total"); err != nil || puts < 1 {
		t.Errorf("the metric of proposals is %v, %v", puts, err)
	}
}

func TestEtcdCluster_GoesOnWithoutItsLeader(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c := servers.EtcdCluster(t, 3, nil)
	first := c.Leader(t)
	for _, n := range c.Nodes() {
		if n != first {
			c.MoveLeader(t, n)
			if got := c.Leader(t); got != n {
				t.Errorf("%s leads, and %s was to", got.Addr(), n.Addr())
			}
			if err := etcdPut(ctx, first); err != nil {
				t.Errorf("through a node that has handed its office over: %v", err)
			}
		}
	}
	first = c.Leader(t)
	first.Kill()
	second := c.Leader(t)
	if second == first {
		t.Fatal("a node leads that was killed")
	}
	if err := etcdPut(ctx, second); err != nil {
		t.Error(err)
	}
	first.Restart()
	if err := etcdPut(ctx, first); err != nil {
		t.Errorf("through the node that has come back: %v", err)
	}
}
