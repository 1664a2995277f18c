package experiment

import "github.com/interlock-go/interlock/lab/internal/play"

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
