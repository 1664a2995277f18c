package target

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock/enginekit"
	"github.com/interlock-go/interlock/internal/servers"
)

// A leader that was deposed, and does not know it yet, goes on answering from its own memory. A client that takes such
// an answer for a proof that its session lasts trusts its holds beside those of the next. So the holder of a lock is
// cut off together with the leader, the others are killed, so that they elect another as soon as they are back, and the
// lock is held for long enough that the next gets it meanwhile.

// DeposedHold is how long holds have to last at least: until the successor has ended the holder's session.
const DeposedHold = 14 * time.Second

const (
	// A leader of ZooKeeper answers for so many of its ticks, and one more, after it has heard nothing. Both are what
	// ZooKeeper's own example has.
	deposedTick, deposedTicks = 2 * time.Second, 5

	// A leader of etcd notices within two election timeouts of its own, so it has to stand still for a while, for
	// deposedFor: until a client has sent a last sign of life, and before its session has ended.
	deposedLease = 6 * time.Second
	deposedFor   = deposedLease * 13 / 20
	deposedUntil = 2*deposedLease + time.Second // then the next has had the lock for long

	// fresh is how long somebody may have had the lock when the leader is deposed.
	fresh = 2 * time.Second
)

// freshHolder waits for a client to get the lock, and returns it and the others.
func (i *Instance) freshHolder(ctx context.Context) (holder *servers.Member, others []*servers.Member, err error) {
	for {
		holder, since := i.Holder()
		if holder != nil && time.Since(since) < fresh {
			others := slices.DeleteFunc(slices.Clone(i.Clients), func(m *servers.Member) bool { return m == holder })
			return holder, others, nil
		}
		if !enginekit.Pause(ctx, 10*time.Millisecond) {
			return nil, nil, ErrNothing
		}
	}
}

// deposeEtcd deposes the leader of a cluster.
func (i *Instance) deposeEtcd(t testing.TB, c *servers.EtcdNodes) Inject {
	return func(ctx context.Context, _ *rand.Rand, _ time.Duration) error {
		leader := c.Leader(t)
		followers := slices.DeleteFunc(slices.Clone(c.Nodes()), func(n *servers.EtcdNode) bool { return n == leader })
		heal, err := i.alone(ctx, leader.Server, members(followers))
		defer func() { _ = heal() }() // also if a server ends this goroutine
		if err != nil {
			return err
		}
		resume := sync.OnceFunc(leader.Cont)
		defer resume() // before heal, so that a run that fails leaves no server that stands still
		leader.Stop()
		begun := time.Now()
		c.Restart(t, followers...)
		enginekit.Pause(ctx, deposedFor-time.Since(begun))
		resume()
		enginekit.Pause(ctx, deposedUntil-time.Since(begun))
		err = heal()
		c.Leader(t)
		return err
	}
}

// deposeZooKeeper deposes the leader of an ensemble.
func (i *Instance) deposeZooKeeper(e *servers.ZooKeeperEnsemble) Inject {
	return func(ctx context.Context, _ *rand.Rand, _ time.Duration) error {
		leader, followers := e.Leader(), e.Followers()
		heal, err := i.alone(ctx, leader.Server, members(followers))
		defer func() { _ = heal() }() // also if a server ends this goroutine
		if err != nil {
			return err
		}
		begun := time.Now()
		e.Restart(followers...)
		enginekit.Pause(ctx, (deposedTicks+2)*deposedTick-time.Since(begun))
		err = heal()
		e.AwaitReady()
		return err
	}
}

// alone waits for a client to get the lock, and leaves it alone with the leader, of which nobody hears. The followers
// must die after that: a leader whose connections end knows at once that it leads nobody. If the holder does not come
// to the leader the error is ErrNothing: nobody would hear the leader alone, and nothing would have been withstood.
func (i *Instance) alone(
	ctx context.Context, leader *servers.Server, followers []*servers.Member,
) (heal func() error, err error) {
	holder, others, err := i.freshHolder(ctx)
	if err != nil {
		return func() error { return nil }, err
	}
	end, err := i.Steer(holder, leader.Addr())
	if err != nil {
		return func() error { return nil }, err
	}
	heal = sync.OnceValue(func() error {
		err := i.Network.Heal()
		end()
		return err
	})
	return heal, i.Network.Split([]*servers.Member{leader.Member(), holder}, append(followers, others...))
}
