package experiment

import (
	"time"

	"github.com/interlock-go/interlock/internal/servers"
	"github.com/interlock-go/interlock/lab/exhibit"
	"github.com/interlock-go/interlock/lab/exhibit/d10redlock"
	"github.com/interlock-go/interlock/lab/internal/play"
	"github.com/interlock-go/interlock/lab/internal/story"
)

func d10() *Experiment {
	return &Experiment{
		ID:    "D10",
		Title: story.T("Redlock: a clock that jumps, a long pause, a node that forgets", "Redlock：时钟跳变、长时间停顿、节点丢数据"),
		Needs: []string{"redis"},
		About: story.T("Redlock asks five independent servers and needs three. It holds when one of them dies (D9). "+
			"It rests on three assumptions: no clock jumps, nobody stands still for longer than the lease, no server "+
			"forgets. Each act breaks one of them. The textbook's lock has no token that grows, so no resource "+
			"could tell which of two holders is the newer; interlock's has, and a node that has forgotten does not "+
			"vote until all leases of "+
			"before are over.",
			"Redlock 向五台独立的服务器加锁，三台同意才算。崩溃一台没问题（D9）。它依赖三个假设：时钟不跳变，没有人停顿超过租约，"+
				"没有服务器丢数据。下面每一幕打破其中一个。教科书版的 Redlock 没有递增的令牌，资源没法分辨两个持有者谁更新；"+
				"interlock 的有令牌，而且丢了数据的节点在旧租约全部到期之前不投票。"),
		run: func(p *play.Play) {
			d10jump(p)
			d10pause(p)
			d10restart(p)
			p.Sound("a node is started again, and empty", "节点重启后是空的")
			d10rests(p)
			p.Fenced("a clock jumps; the resource checks tokens", "时钟跳变；资源检查令牌")
			d10refused(p)
			p.Fenced("the holder stands still just before its write; the resource checks tokens",
				"持有者在写入之前停住；资源检查令牌")
			d10still(p)
		},
	}
}

// d10cast are two clients and five nodes: A reaches nodes 1 to 3 only, B nodes 3 to 5.
func d10cast(p *play.Play) (a, b *play.Actor, lockA, lockB *d10redlock.Lock, all []*play.Redis) {
	p.Helper()
	all = fiveNodes(p)
	a, b = p.Actor("A"), p.Actor("B")
	lockA, lockB = &d10redlock.Lock{Key: key}, &d10redlock.Lock{Key: key}
	for i, node := range all {
		lockA.Nodes = append(lockA.Nodes, reach(p, a, node, i, i < 3))
		lockB.Nodes = append(lockB.Nodes, reach(p, b, node, i, i >= 2))
	}
	p.Fate("The network is cut: A reaches nodes 1, 2, 3 only, B nodes 3, 4, 5.", "网络被切断：A 只连得到节点 1、2、3，B 只连得到节点 3、4、5。")
	return a, b, lockA, lockB, all
}

// reach connects an actor to a node, over a cable that is cut if the node is not to be reached.
func reach(p *play.Play, a *play.Actor, node *play.Redis, i int, reachable bool) exhibit.Conn {
	p.Helper()
	if reachable {
		return a.Dial(node.Addr(), label(i))
	}
	cable := servers.NewProxy(p, node.Addr())
	link := a.Dial(cable.Addr(), label(i))
	cable.Refuse()
	cable.Reset()
	return link
}

func d10jump(p *play.Play) {
	p.Act("a clock jumps", "时钟跳变")
	a, b, lockA, lockB, all := d10cast(p)
	_, ok := lockA.TryLock(p.Context(), "A", 30*time.Second)
	a.Got(true, ok, nil)
	all[2].TimePasses(key, "Node 3's clock jumps forward by 30 s, and A's key there ends (the lab ends it: PEXPIRE 1).",
		"节点 3 的时钟向前跳了 30 秒，A 在那里的键随之到期（实验用 PEXPIRE 1 让它到期）。")
	_, ok = lockB.TryLock(p.Context(), "B", 30*time.Second)
	b.Got(true, ok, nil)
	p.ShowClash("Each has a majority: one clock was enough.", "两个人都有多数：一个时钟就够了。")
}

func d10pause(p *play.Play) {
	p.Act("the holder stands still", "持有者停住")
	all := fiveNodes(p)
	a, b := p.Actor("A"), p.Actor("B")
	lockA := &d10redlock.Lock{Nodes: toAll(a, all), Key: key}
	lockB := &d10redlock.Lock{Nodes: toAll(b, all), Key: key}
	_, ok := lockA.TryLock(p.Context(), "A", 30*time.Second)
	a.Got(true, ok, nil)
	a.StandStill()
	for _, node := range all {
		node.EndKey(key)
	}
	p.Fate("30 s pass (the lab ends the keys: PEXPIRE 1). A's lease is over on all nodes.",
		"30 秒过去了（实验用 PEXPIRE 1 让键到期）。A 的租约在所有节点上都到期了。")
	_, ok = lockB.TryLock(p.Context(), "B", 30*time.Second)
	b.Got(true, ok, nil)
	a.GoOn()
	p.ShowClash(
		"A measured its validity when it got the lock, and does not look at it again. A second look would have helped "+
			"here, but A can also stand still between a look and the write.",
		"A 拿到锁时算过有效期，之后没有再看。在这里再看一次是有用的，但 A 也可能停在看完之后、写入之前。")
}

func d10restart(p *play.Play) {
	p.Act("a node is started again, and empty", "节点重启后是空的")
	a, b, lockA, lockB, all := d10cast(p)
	_, ok := lockA.TryLock(p.Context(), "A", 30*time.Second)
	a.Got(true, ok, nil)
	all[2].Restart()
	all[2].Connect()
	lockB.Nodes[2] = b.Dial(all[2].Addr(), label(2))
	p.Fate("Node 3 crashes and is started again. It writes nothing to disk, so it has forgotten A.",
		"节点 3 崩溃后重启。它没有落盘，忘了 A。")
	_, ok = lockB.TryLock(p.Context(), "B", 30*time.Second)
	b.Got(true, ok, nil)
	p.ShowClash("Each has a majority: one memory was enough.", "两个人都有多数：一个节点丢数据就够了。")
}

// d10split are two processes on five nodes of interlock's Redlock. When the cables are cut A reaches nodes 1 to 3
// only, and B nodes 3 to 5.
func d10split(p *play.Play) (a, b *play.Process, all []*play.Redis) {
	p.Helper()
	all = fiveMore(p)
	ofA, cutA := behind(p, all, 1, 2, 3)
	ofB, cutB := behind(p, all, 3, 4, 5)
	a, b = p.Process("A", redlock(ofA), key, 2*lease), p.Process("B", redlock(ofB), key, 2*lease)
	cutA()
	cutB()
	p.Fate("The network is cut: A reaches nodes 1, 2, 3 only, B nodes 3, 4, 5.", "网络被切断：A 只连得到节点 1、2、3，B 只连得到节点 3、4、5。")
	return a, b, all
}

// d10rests is a node that comes back empty. It does not vote.
func d10rests(p *play.Play) {
	a, b, all := d10split(p)
	a.Lock()
	all[2].Restart()
	all[2].Connect()
	p.Fate("Node 3 crashes and is started again, empty.", "节点 3 崩溃后重启，是空的。")
	p.Show(!b.TryLock(),
		"Node 3 has lost the mark that says since when it remembers. It may not vote until every lease that it "+
			"may have forgotten is over, so B has two votes of five.",
		"节点 3 丢了“从何时起有记忆”的标记。在它可能忘掉的租约全部到期之前，它不能投票，所以 B 只有五票中的两票。")
	a.Told()
	p.ShowAlone("A has two votes left and cannot renew, so it is told in time. Nobody gets the lock until the "+
		"network or node 3 is back: that is the price. Never were two inside.",
		"A 只剩两票，续不了期，及时得知丢锁。网络或节点 3 恢复之前谁也拿不到锁：这就是代价。任何时刻都没有两个人同时在里面。")
}

// d10refused is a clock that jumps: two hold the lock, and the resource can tell who is newer.
func d10refused(p *play.Play) {
	a, b, all := d10split(p)
	goods := p.Resource(p.Redis(), 10, a, b)
	a.Lock()
	goods.Read(a)
	all[2].TimePasses("interlock:mutex:"+key,
		"Node 3's clock jumps forward, and A's lease there ends (the lab ends it: PEXPIRE 1).",
		"节点 3 的时钟向前跳，A 在那里的租约随之到期（实验用 PEXPIRE 1 让它到期）。")
	p.Show(b.TryLock(), "B has a majority too. No quorum helps against clocks that jump.", "B 也有了多数。时钟跳变，多数派帮不上忙。")
	goods.Read(b)
	p.Show(goods.Write(b, 8),
		"B sells two pieces. Its token is larger than A's: node 3 remembers the largest that it has seen.",
		"B 卖了两件。它的令牌比 A 的大：节点 3 记得它见过的最大令牌。")
	p.Show(!goods.Write(a, 9), "A sells one piece: it has not been told of anything.", "A 卖了一件：还没有人告诉它任何事。")
	corrupted(p, goods)
	a.Told()
	p.Show(true, "And A is told when no majority renews its lease.", "而 A 在得不到多数续期时得知丢锁。")
}

// d10still is a holder that stands still just before its write.
func d10still(p *play.Play) {
	all := fiveMore(p)
	url := redlock(addrs(all))
	a, b := p.Process("A", url, key, lease), p.Process("B", url, key, lease)
	overtaken(p, p.Resource(p.Redis(), 10, a, b), a, b)
}
