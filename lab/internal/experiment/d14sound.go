package experiment

import (
	"strings"
	"time"

	"github.com/interlock-go/interlock/internal/servers"
	"github.com/interlock-go/interlock/lab/internal/play"
)

// d14sound is interlock's Redlock in the events of D14. It asks all nodes at once.
func d14sound(p *play.Play) {
	p.Sound("a minority", "少数派")
	all := fiveMore(p)
	d14split(p, all)
	p.Sound("the answers take longer than the lease", "应答比租约还慢")
	watchNodes(p, all)
	d14late(p, all)
	p.Sound("a lost answer", "丢失的应答")
	watchNodes(p, all)
	d14lost(p, all)
	p.Sound("a slow node, and one release for all", "一个慢节点；一次释放全部")
	watchNodes(p, all)
	d14oneSlow(p, all)
}

func watchNodes(p *play.Play, all []*play.Redis) {
	p.Helper()
	for i, node := range all {
		p.WatchNode(label(i), node, key)
	}
}

func d14split(p *play.Play, all []*play.Redis) {
	ofA, cutA := behind(p, all, 1, 2)
	ofB, cutB := behind(p, all, 3, 4, 5)
	a, b := p.Process("A", redlock(ofA), key, lease), p.Process("B", redlock(ofB), key, lease)
	cutA()
	cutB()
	p.Fate("The network is cut: A reaches nodes 1 and 2 only, B nodes 3, 4, 5.", "网络被切断：A 只连得到节点 1、2，B 只连得到节点 3、4、5。")
	p.Show(!a.TryLock(), "Two votes of five are no majority.", "五票里的两票不是多数。")
	b.Lock()
	p.ShowAlone("B has a majority, and is alone.", "B 有多数，而且只有它。")
	b.Unlock()
}

// cables puts a cable before each node.
func cables(p *play.Play, all []*play.Redis) (addrs []string, lines []*servers.Proxy) {
	p.Helper()
	for _, node := range all {
		line := servers.NewProxy(p, node.Addr())
		lines = append(lines, line)
		addrs = append(addrs, line.Addr())
	}
	return addrs, lines
}

// d14late has the votes for A end before A hears of them, and B get the lock meanwhile.
func d14late(p *play.Play, all []*play.Redis) {
	ofA, lines := cables(p, all)
	a, b := p.Process("A", redlock(ofA), key, lease), p.Process("B", redlock(addrs(all)), key, lease)
	for _, line := range lines {
		line.BlackHole(servers.ToClient)
	}
	p.Fate("What the nodes say to A is held back.", "各节点对 A 说的话被扣住。")
	a.BeginTry()
	for _, node := range all {
		node.Await("interlock:mutex:"+key, 1)
	}
	a.Says("TryLock: all nodes have voted for it, and it has heard of no vote.", "TryLock：所有节点都投了它的票，它一票也没收到。")
	for _, node := range all {
		node.Await("interlock:mutex:"+key, 0)
	}
	p.Fate("%s pass: the votes are over.", "%s 过去，票过期了。", play.Short(lease))
	b.Lock()
	for _, line := range lines {
		line.Pass()
	}
	p.Fate("Now A hears all five answers.", "这时 A 才收到五个应答。")
	p.Show(!a.Tried(), "A has measured from before it asked. Votes older than the lease are none.",
		"A 从询问之前开始计时。比租约还老的票不算票。")
	p.ShowAlone("B is alone.", "只有 B 在里面。")
	b.Unlock()
}

// d14lost has node 3 vote for A, and A not hear of it. The lease is long, so that B's grant can only
// come from A's release.
func d14lost(p *play.Play, all []*play.Redis) {
	const long = time.Minute
	ofA, cutA := behind(p, all, 1, 2, 3)
	lossy := servers.NewProxy(p, all[2].Addr())
	ofA[2] = lossy.Addr()
	ofB, cutB := behind(p, all, 1, 2, 3)
	a := p.Process("A", strings.Replace(redlock(ofA), "=10s", "=2s", 1), key, long)
	b := p.Process("B", redlock(ofB), key, long)
	cutA()
	cutB()
	lossy.DropReplies()
	p.Fate("Nodes 4 and 5 are cut off, and what node 3 says to A is lost.", "节点 4、5 被断开；节点 3 对 A 说的话全部丢失。")
	p.Show(!a.TryLock(), "A knows of two votes, and gives back all that it may have, on node 3 too.",
		"A 只知道两票，于是归还它可能拥有的一切，节点 3 上也是。")
	b.Lock()
	p.ShowAlone("B has nodes 1, 2 and 3, long before A's lease of 1 min would have ended.",
		"B 拿到节点 1、2、3，远远早于 A 那 1 分钟的租约到期。")
	b.Unlock()
}

func d14oneSlow(p *play.Play, all []*play.Redis) {
	ofA, lines := cables(p, all)
	a, b := p.Process("A", redlock(ofA), key, 2*lease), p.Process("B", redlock(addrs(all)), key, 2*lease)
	lines[1].BlackHole(servers.ToClient)
	p.Fate("What node 2 says to A is held back.", "节点 2 对 A 说的话被扣住。")
	a.Lock()
	p.Show(true, "Four answers are enough; nobody waits for node 2.", "四个应答就够了，没有人等节点 2。")
	a.Unlock()
	b.Lock()
	p.ShowAlone("All nodes had the same value of A's, and one release has freed them.", "A 在所有节点上是同一个值，一次释放全部空出。")
	b.Unlock()
}
