package target

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/enginekit"
	"github.com/interlock-go/interlock/internal/servers"
)

func cluster(t testing.TB, on *ground) *Instance {
	var clocks []*servers.Clock
	for range 6 {
		clocks = append(clocks, on.clock(t))
	}
	c := servers.RedisCluster(t, 3, 1, &servers.RedisOptions{Network: on.network, Clocks: clocks})
	kill := func(slot int) {
		c.AwaitFailover(slot, c.KillOwner(slot))
		c.RestartDead()
	}
	stores := func() []*servers.RedisNode { return primaries(c) }
	i := &Instance{
		left: redisLeft(stores), stores: stores, Places: c.Addrs(),
		URL: at("redis+cluster://"+strings.Join(c.Addrs(), ","), ""), version: redisVersion(c.Owner(0)),
		Injections: map[Fault]Inject{
			Failover: func(ctx context.Context, dice *rand.Rand, _ time.Duration) error {
				slot, err := lockedSlot(ctx, c, dice)
				if err == nil {
					kill(slot)
				}
				return err
			},
			LeaderMove: func(ctx context.Context, dice *rand.Rand, lasts time.Duration) error {
				c.Failover(dice.IntN(slots))
				c.AwaitReady()
				enginekit.Pause(ctx, lasts) // for a while nobody votes for this part of the slots again
				return nil
			},
			CutFailover: func(ctx context.Context, dice *rand.Rand, lasts time.Duration) error {
				slot, err := lockedSlot(ctx, c, dice)
				if err == nil {
					err = cutReplicas(ctx, c.Owner(slot), lasts)
				}
				if err == nil {
					kill(slot)
				}
				return err
			},
			Clock: func(ctx context.Context, dice *rand.Rand, lasts time.Duration) error {
				slot, err := lockedSlot(ctx, c, dice)
				if err == nil {
					err = jump(clocks[slices.Index(c.Nodes(), c.Owner(slot))])(ctx, dice, lasts)
					c.AwaitReady() // a node takes a jump ahead for the silence of all others
				}
				return err
			},
			SlotMove: func(ctx context.Context, dice *rand.Rand, lasts time.Duration) error {
				return moveSlot(ctx, c, dice, lasts)
			},
		},
	}
	maps.Copy(i.Injections, redisOperator(stores))
	maps.Copy(i.Injections, replicaNodeFaults(c.Nodes(), c.AwaitReady))
	i.Injections[Partition] = func(ctx context.Context, dice *rand.Rand, lasts time.Duration) error {
		slot, err := lockedSlot(ctx, c, dice)
		if err != nil {
			return err
		}
		primary := c.Owner(slot)
		choose := func(dice *rand.Rand) (few, many []*servers.Member) {
			return leaderAlone(members(c.Nodes()), primary.Member(), dice)
		}
		return i.cutOffUnheard(primary, c.Nodes(), choose, c.AwaitReady)(ctx, dice, lasts)
	}
	return i
}

const slots = 16384 // of a Cluster

// primaries are the three, who have these among their slots.
func primaries(c *servers.ClusterRedis) []*servers.RedisNode {
	return []*servers.RedisNode{c.Owner(0), c.Owner(slots / 2), c.Owner(slots - 1)}
}

// lockedSlot draws one of the slots of the mutexes that somebody has or waits for: what befalls another part of the
// Cluster is nothing to them. Without any it is some slot.
func lockedSlot(ctx context.Context, c *servers.ClusterRedis, dice *rand.Rand) (int, error) {
	keys, _, err := mutexKeys(ctx, primaries(c))
	if err != nil || len(keys) == 0 {
		return dice.IntN(slots), err
	}
	return c.Slot(keys[dice.IntN(len(keys))]), nil
}

// cutReplicas keeps a primary's replicas from hearing of it for a while, though its clients do. That a replica stands
// still is not enough: what was sent meanwhile lies in its socket. So it is not let in again.
func cutReplicas(ctx context.Context, primary *servers.RedisNode, lasts time.Duration) error {
	for _, command := range [][]string{
		{"ACL", "SETUSER", "default", "-psync", "-sync"}, {"CLIENT", "KILL", "TYPE", "replica"},
	} {
		if _, err := primary.Do(context.WithoutCancel(ctx), command...); err != nil {
			return err
		}
	}
	enginekit.Pause(ctx, min(lasts, 3*time.Second)) // a replica that has been alone for longer may not take over
	info, err := primary.Info(context.WithoutCancel(ctx), "replication")
	if err == nil && info["connected_slaves"] != "0" {
		err = fmt.Errorf("the primary still has %s replicas, and was to have none", info["connected_slaves"])
	}
	return err
}

// moveSlot moves a slot that has keys to another primary. In the middle of that each of the two knows some of them.
func moveSlot(ctx context.Context, c *servers.ClusterRedis, dice *rand.Rand, lasts time.Duration) error {
	key, err := c.Owner(dice.IntN(slots)).Do(ctx, "RANDOMKEY")
	name, found := key.(string)
	if err == nil && !found {
		err = ErrNothing
	}
	if err != nil {
		return err
	}
	slot := c.Slot(name)
	to := c.Owner(dice.IntN(slots))
	if to == c.Owner(slot) {
		return ErrNothing
	}
	m := c.Migrate(slot, to)
	enginekit.Pause(ctx, lasts/4)
	m.MoveKeys()
	enginekit.Pause(ctx, lasts/4)
	m.MoveKeys() // those that were made in between
	m.Finish()
	return nil
}
