package target

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"slices"
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
