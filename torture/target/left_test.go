package target

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/drivertest/servers"
	_ "github.com/interlock-go/interlock/etcdlock"
	_ "github.com/interlock-go/interlock/redislock"
)

// What was given back leaves nothing, what somebody has left is found, and the servers say which version they are.
func TestLeft_FindsWhatNeverEnds(t *testing.T) {
	for _, c := range []struct {
		engine, product string
		litter          func(ctx context.Context, s Server) error
		left            string
	}{
		{"redis", "Redis ", func(ctx context.Context, s Server) error {
			_, err := s.(*servers.RedisNode).Do(ctx, "SET", "interlock:mutex:y", "1")
			return err
		}, "the key interlock:mutex:y never ends"},
		{"etcd", "etcd ", func(ctx context.Context, s Server) error {
			_, err := s.(*servers.EtcdNode).Do(ctx, "kv/put", map[string]any{"key": "eQ==", "value": "eQ=="})
			return err
		}, `the key "y" has no lease`},
	} {
		t.Run(c.engine, func(t *testing.T) {
			g, err := Find(c.engine)
			if err != nil {
				t.Fatal(err)
			}
			i := g.Start(t, nil)
			lock(t, open(t, i.Direct()), "x")
			if left, err := i.Left(t.Context()); err != nil || len(left) > 0 {
				t.Errorf("after use: %q, %v", left, err)
			}
			if err := c.litter(t.Context(), i.Server); err != nil {
				t.Fatal(err)
			}
			if left, err := i.Left(t.Context()); err != nil || !slices.Equal(left, []string{c.left}) {
				t.Errorf("with litter: %q, %v", left, err)
			}
			if v, err := i.Version(t.Context()); err != nil || !strings.HasPrefix(v, c.product) || len(v) == len(c.product) {
				t.Errorf("the version is %q, %v", v, err)
			}
		})
	}
}
