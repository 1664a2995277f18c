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
