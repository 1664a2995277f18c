package redislock_test

import (
	"context"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/internal/servers"
)

// Open asks all servers that it is told of at once. Who answers when it has failed is not kept on the line.
func TestOpen_ThatFails_LeavesNoConnection(t *testing.T) {
	s := servers.RedisServer(t, nil) // no node of a Cluster, which Open finds out when it answers
	late := servers.NewProxy(t, s.Addr())
	late.BlackHole(servers.ToClient)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if _, err := interlock.Open(ctx, "redis+cluster://"+s.Addr()+","+late.Addr(), nil); err == nil {
		t.Fatal("a server that is no node of a Cluster was taken for one")
	}
	late.Pass()
	if !within(faultsPatience, func() bool { open, _ := late.Connections(); return open == 0 }) {
		t.Error("a connection was left open")
	}
}
