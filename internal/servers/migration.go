package servers

import (
	"context"
	"net"
	"strconv"
	"time"
)

// Migration moves one slot of a Cluster to another primary, in steps between which a test can act. Its methods end the
// test when a step is refused.
type Migration struct {
	c        *ClusterRedis
	slot     int
	From, To *RedisNode
}

// Migrate begins to move a slot to the primary that is given: from now on the slot is "migrating" at its owner, which
// answers ASK for keys that it does not have, and "importing" at the other.
func (c *ClusterRedis) Migrate(slot int, to *RedisNode) *Migration {
	c.t.Helper()
	m := &Migration{c: c, slot: slot, From: c.Owner(slot), To: to}
	// In this order: an ASK must not lead to a node that does not expect the slot.
	m.set(m.To, "IMPORTING", c.ids[m.From])
	m.set(m.From, "MIGRATING", c.ids[m.To])
	return m
}

// MoveKeys moves the keys that are in the slot now, and returns how many these were.
func (m *Migration) MoveKeys() int {
	m.c.t.Helper()
	of, port, err := net.SplitHostPort(m.To.Addr())
	if err != nil {
		m.c.t.Fatal(err)
	}
	moved := 0
	for {
		reply := m.do(m.From, "CLUSTER", "GETKEYSINSLOT", strconv.Itoa(m.slot), "100")
		keys, _ := reply.([]any)
		if len(keys) == 0 {
			return moved
		}
		command := []string{"MIGRATE", of, port, "", "0", strconv.FormatInt(pollOnce.Milliseconds(), 10)}
		if m.To.password != "" {
			command = append(command, "AUTH2", m.To.user, m.To.password)
		}
		command = append(command, "KEYS")
		for _, key := range keys {
			command = append(command, key.(string))
		}
		m.do(m.From, command...)
		moved += len(keys)
	}
}

// Finish gives the slot to its new owner, and returns when all nodes know. Move the keys first: those that are left
// behind are lost.
func (m *Migration) Finish() {
	m.c.t.Helper()
	// The new owner first: if the old one gave it away before, a failure in between would leave it with nobody.
	m.set(m.To, "NODE", m.c.ids[m.To])
	m.set(m.From, "NODE", m.c.ids[m.To])
	m.c.await("all nodes to know the slot's new owner", func(ctx context.Context) error {
		owner, err := m.c.agreed(ctx, m.slot)
		if err == nil && owner != m.To {
			err = errStill(owner)
		}
		return err
	})
}

// Abort leaves the slot with its owner. Keys that were moved are not moved back.
func (m *Migration) Abort() {
	m.c.t.Helper()
	m.set(m.From, "STABLE")
	m.set(m.To, "STABLE")
}

func (m *Migration) set(at *RedisNode, state ...string) {
	m.c.t.Helper()
	m.do(at, append([]string{"CLUSTER", "SETSLOT", strconv.Itoa(m.slot)}, state...)...)
}

func (m *Migration) do(at *RedisNode, command ...string) any {
	m.c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	reply, err := at.Do(ctx, command...)
	if err != nil {
		m.c.t.Fatalf("%v on %s: %v", command[:min(len(command), 5)], at.Addr(), err)
	}
	return reply
}
