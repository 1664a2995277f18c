package target

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/interlock-go/interlock/internal/servers"
)

// left lists what a server still has that no clock will remove and that is not documented to stay.
type left func(ctx context.Context) ([]string, error)

// Left lists what is left in the servers when all holds, waits and leases are over and all clients have gone. The
// engines file and memory have nothing to list: their locks end with their processes.
func (i *Instance) Left(ctx context.Context) ([]string, error) {
	if i.left == nil {
		return nil, nil
	}
	return i.left(ctx)
}

// redisLeft lists the keys that never end, of all servers that take writes, but for the floors of tokens, the mark of a
// node of Redlock, and latches, which a client that was killed has left above zero.
func redisLeft(stores func() []*servers.RedisNode) left {
	return func(ctx context.Context) (found []string, err error) {
		for _, s := range stores() {
			of, err := endless(ctx, s)
			if err != nil {
				return nil, err
			}
			found = append(found, of...)
		}
		return found, nil
	}
}

func endless(ctx context.Context, n *servers.RedisNode) (found []string, err error) {
	answer, err := n.Do(ctx, "KEYS", "*")
	if err != nil {
		return nil, err
	}
	keys, _ := answer.([]any)
	for _, key := range keys {
		name := fmt.Sprint(key)
		_, kind, _ := strings.Cut(name, ":")
		if kind == "redlock" || strings.HasPrefix(kind, "floor:") || strings.HasPrefix(kind, "latch:") {
			continue
		}
		ends, err := n.Do(ctx, "PTTL", name)
		if err != nil {
			return nil, err
		}
		if fmt.Sprint(ends) == "-1" {
			found = append(found, fmt.Sprintf("the key %s of %s never ends", name, n.Addr()))
		}
	}
	return found, nil
}

// etcdLeft lists the keys that end with no lease.
func etcdLeft(n *servers.EtcdNode) left {
	return func(ctx context.Context) (found []string, err error) {
		answer, err := n.Do(ctx, "kv/range", allKeys)
		if err != nil {
			return nil, err
		}
		kvs, _ := answer["kvs"].([]any)
		for _, kv := range kvs {
			of, _ := kv.(map[string]any)
			if lease := of["lease"]; lease != nil && lease != "0" {
				continue
			}
			key, err := base64.StdEncoding.DecodeString(fmt.Sprint(of["key"]))
			if err != nil {
				return nil, err
			}
			found = append(found, fmt.Sprintf("the key %q has no lease", key))
		}
		return found, nil
	}
}
