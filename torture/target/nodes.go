package target

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock/enginekit"
	"github.com/interlock-go/interlock/internal/servers"
)

// nodeFaults kill and stop one of several servers.
func nodeFaults[S Server](nodes []S) map[Fault]Inject {
	return map[Fault]Inject{
		NodeKill: func(ctx context.Context, dice *rand.Rand, lasts time.Duration) error {
			n := nodes[dice.IntN(len(nodes))]
			n.Kill()
			enginekit.Pause(ctx, lasts/2)
			n.Restart()
			return nil
		},
		NodeStop: func(ctx context.Context, dice *rand.Rand, lasts time.Duration) error {
			n := nodes[dice.IntN(len(nodes))]
			n.Stop()
			defer n.Cont()
			enginekit.Pause(ctx, lasts)
			return nil
		},
	}
}

// replicaNodeFaults are nodeFaults of nodes that replace each other. They have healed when all is ready again. A node
// that was killed is mostly back before it is missed: [Failover] is for one that is not.
func replicaNodeFaults(nodes []*servers.RedisNode, ready func()) map[Fault]Inject {
	kill, stop := nodeFaults(nodes)[NodeKill], nodeFaults(nodes)[NodeStop]
	return map[Fault]Inject{
		NodeKill: func(ctx context.Context, dice *rand.Rand, lasts time.Duration) error {
			err := kill(ctx, dice, lasts/4)
			ready()
			return err
		},
		NodeStop: func(ctx context.Context, dice *rand.Rand, lasts time.Duration) error {
			err := stop(ctx, dice, lasts)
			ready()
			return err
		},
	}
}

// members are the places of servers in a network, if they are in one.
func members[S interface{ Member() *servers.Member }](nodes []S) (all []*servers.Member) {
	for _, n := range nodes {
		all = append(all, n.Member())
	}
	return all
}

// leaderAlone chooses who is cut off from the others: mostly the leader, and else anybody.
func leaderAlone(nodes []*servers.Member, leader *servers.Member, dice *rand.Rand) (few, many []*servers.Member) {
	alone := leader
	if dice.IntN(4) == 0 {
		alone = nodes[dice.IntN(len(nodes))]
	}
	return []*servers.Member{alone}, slices.DeleteFunc(slices.Clone(nodes), func(m *servers.Member) bool {
		return m == alone
	})
}

// settling is for how much longer than other faults the network is cut: what is cut off is missed after a second or
// three, and then somebody else is elected.
const settling = 3 * time.Second

// cutOff cuts the network into the servers that choose returns first and those it returns then, with about half of the
// clients on either side. It returns when the network has healed, and the servers with it.
func (i *Instance) cutOff(choose func(dice *rand.Rand) (few, many []*servers.Member), healed func()) Inject {
	return func(ctx context.Context, dice *rand.Rand, lasts time.Duration) error {
		few, many := choose(dice)
		clients := shuffled(i.Clients, dice)
		half := len(clients) / 2
		return i.split(ctx, settling+lasts, append(few, clients[:half]...), append(many, clients[half:]...), healed)
	}
}

// cutOffUnheard is cutOff when a primary has granted what those of the nodes that follow it have not heard. Also where
// that fails the network has to be healed, which is for cutOff.
func (i *Instance) cutOffUnheard(
	primary *servers.RedisNode, nodes []*servers.RedisNode, choose func(dice *rand.Rand) (few, many []*servers.Member),
	healed func(),
) Inject {
	return func(ctx context.Context, dice *rand.Rand, lasts time.Duration) error {
		return errors.Join(i.unheard(ctx, primary, nodes), i.cutOff(choose, healed)(ctx, dice, lasts))
	}
}

// A primary's replicas hear nothing of it for leastUnheard before the network is cut, so that what they know gets old,
// and for mostUnheard if it grants nothing by then.
const leastUnheard, mostUnheard = 2 * time.Second, 5 * time.Second

// unheard has those of the nodes that follow a primary hear nothing of it until it has granted a mutex, though it hears
// them and so does not miss them. What it has granted then nobody has but it, when the network is cut; without that
// only grants of that instant would be so. It leaves the network cut there.
func (i *Instance) unheard(ctx context.Context, primary *servers.RedisNode, nodes []*servers.RedisNode) error {
	var replicas []*servers.Member
	for _, n := range nodes {
		info, err := n.Info(ctx, "replication")
		if err != nil {
			return err
		}
		if info["role"] == "slave" && net.JoinHostPort(info["master_host"], info["master_port"]) == primary.Addr() {
			replicas = append(replicas, n.Member())
		}
	}
	if err := i.Network.Cut([]*servers.Member{primary.Member()}, replicas); err != nil {
		return err
	}
	before, err := mutexHolders(ctx, primary)
	enginekit.Pause(ctx, leastUnheard)
	if err != nil {
		return err
	}
	for end := time.Now().Add(mostUnheard - leastUnheard); time.Now().Before(end) &&
		ctx.Err() == nil; enginekit.Pause(ctx, 10*time.Millisecond) {
		now, err := mutexHolders(ctx, primary)
		if err != nil || slices.ContainsFunc(now, func(id string) bool { return !slices.Contains(before, id) }) {
			return err
		}
	}
	return nil
}

// blind keeps one or two of the clients from hearing two or three of the five nodes.
func (i *Instance) blind(nodes []*servers.Member) Inject {
	return func(ctx context.Context, dice *rand.Rand, lasts time.Duration) error {
		clients, unheard := shuffled(i.Clients, dice), shuffled(nodes, dice)
		return i.split(ctx, lasts, clients[:min(len(clients), 1+dice.IntN(2))], unheard[:2+dice.IntN(2)], func() {})
	}
}

func (i *Instance) split(
	ctx context.Context, lasts time.Duration, few, many []*servers.Member, healed func(),
) (err error) {
	err = i.Network.Split(few, many)
	defer func() { err = errors.Join(err, i.Network.Heal()) }() // also if a server ends this goroutine
	enginekit.Pause(ctx, lasts)
	err = errors.Join(err, i.Network.Heal())
	healed()
	return err
}

func shuffled(all []*servers.Member, dice *rand.Rand) []*servers.Member {
	all = slices.Clone(all)
	dice.Shuffle(len(all), func(a, b int) { all[a], all[b] = all[b], all[a] })
	return all
}

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
