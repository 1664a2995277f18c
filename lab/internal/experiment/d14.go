package experiment

import (
	"strings"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/internal/servers"
	"github.com/interlock-go/interlock/lab/exhibit"
	"github.com/interlock-go/interlock/lab/exhibit/d14rules"
	"github.com/interlock-go/interlock/lab/internal/play"
	"github.com/interlock-go/interlock/lab/internal/story"
)

func d14() *Experiment {
	return &Experiment{
		ID: "D14", Title: story.T("Redlock's rules, each left out and kept", "Redlock 的规则：逐条去掉，再逐条保留"),
		Needs: []string{"redis"},
		About: story.T("Explanations of Redlock ask three questions. Why a majority? Why measure T2-T1? Why release "+
			"on all nodes, also on those that seemed to refuse? Each answer is an act without the rule and the same "+
			"act with it. Two more rules follow, which articles break: one value for all nodes, and no node may keep "+
			"the client waiting.",
			"讲 Redlock 的文章会问三个问题：为什么要多数？为什么要测 T2-T1？为什么要在所有节点上释放，包括看似拒绝了的？每个问题的答案是两幕："+
				"先去掉这条规则，再在同样的事件里保留它。后面还有两条被文章违反的规则：所有节点用同一个值；不让一个慢节点拖住客户端。"),
		run: func(p *play.Play) {
			nodes := make([]*play.Redis, nodes)
			for i := range nodes {
				nodes[i] = p.Redis()
			}
			d14majority(p, nodes, false)
			d14majority(p, nodes, true)
			d14measure(p, nodes, false)
			d14measure(p, nodes, true)
			d14everywhere(p, nodes, false)
			d14everywhere(p, nodes, true)
			d14value(p, nodes, false)
			d14value(p, nodes, true)
			d14inTurn(p, nodes)
			d14limited(p, nodes)
			d14sound(p)
		},
	}
}

// allRules are those of the algorithm, but for the time of a node: act by act, the lab says who is slow.
var allRules = d14rules.Rules{Majority: true, Measure: true, Everywhere: true, OneValue: true}

// voter is a client of the exhibit, with a clock that the lab can move.
type voter struct {
	*play.Actor
	p     *play.Play
	lock  *d14rules.Lock
	lines []*play.Line
	ahead atomic.Int64 // of its clock
}

// d14act begins an act on nodes that know nothing yet. The network is whole.
func d14act(p *play.Play, nodes []*play.Redis, rules d14rules.Rules, en, zh string) (a, b *voter) {
	p.Helper()
	p.Act(en, zh)
	for i, node := range nodes {
		node.Ask("FLUSHALL")
		p.Watch(label(i), node.Value(key))
	}
	return newVoter(p, "A", rules), newVoter(p, "B", rules)
}

func newVoter(p *play.Play, name string, rules d14rules.Rules) *voter {
	v := &voter{Actor: p.Actor(name), p: p, lock: &d14rules.Lock{Key: key, Rules: rules}}
	v.lock.Now = func() time.Time { return time.Now().Add(time.Duration(v.ahead.Load())) }
	return v
}

// reaches connects the client to nodes, of which it reaches those that are named.
func (v *voter) reaches(nodes []*play.Redis, named ...int) {
	v.p.Helper()
	addrs, cut := behind(v.p, nodes, named...)
	v.dial(addrs)
	cut()
}

func (v *voter) dial(addrs []string) {
	v.p.Helper()
	v.lock.Nodes, v.lines = nil, nil
	for i, addr := range addrs {
		line := v.Line(addr, label(i))
		v.lines = append(v.lines, line)
		v.lock.Nodes = append(v.lock.Nodes, exhibit.Conn(line))
	}
}

// tries takes the lock, which the client is to get or not.
func (v *voter) tries(want bool, lease time.Duration) {
	v.p.Helper()
	_, ok := v.lock.TryLock(v.p.Context(), v.Name(), lease)
	v.Got(want, ok, nil)
}

func d14majority(p *play.Play, nodes []*play.Redis, on bool) {
	rules := allRules
	rules.Majority = on
	a, b := d14act(p, nodes, rules, pick(on, "with it: three of five", "why a majority? without it: any node will do"),
		pick(on, "保留：五个里要有三个", "为什么要多数？去掉：一个节点就够"))
	a.reaches(nodes, 1, 2)
	b.reaches(nodes, 3, 4, 5)
	p.Fate("The network is cut: A reaches nodes 1 and 2 only, B nodes 3, 4, 5.", "网络被切断：A 只连得到节点 1、2，B 只连得到节点 3、4、5。")
	a.tries(!on, 30*time.Second)
	b.tries(true, 30*time.Second)
	if on {
		p.ShowAlone("Two majorities have a node in common, and it votes for one of them. A minority is refused.",
			"两个多数派至少有一个公共节点，而它只投一票。少数派被拒绝。")
		return
	}
	p.ShowClash("A's nodes and B's have none in common, so nobody knows of both.", "A 和 B 的节点没有交集，谁也不知道另一边。")
}

// d14measure is a client that needs longer than the lease to ask all nodes.
func d14measure(p *play.Play, nodes []*play.Redis, on bool) {
	rules := allRules
	rules.Measure = on
	a, b := d14act(p, nodes, rules,
		pick(on, "with it: T2-T1 is taken off the lease", "why measure? without it: votes are counted, not their age"),
		pick(on, "保留：从租约里减去 T2-T1", "为什么要测时间？去掉：只数票，不看票龄"))
	a.dial(addrs(nodes))
	b.dial(addrs(nodes))
	var ok bool
	pause := a.UntilNth("SET", 4, func() { _, ok = a.lock.TryLock(p.Context(), "A", 10*time.Second) })
	a.Says("has three votes of five, and stands still before it asks node 4.", "拿到五票里的三票，在询问节点 4 之前停住了。")
	d14time(p, a, nodes[:3])
	b.tries(true, 10*time.Second)
	pause.Resume()
	a.Got(!on, ok, nil)
	if on {
		p.ShowAlone("T2-T1 is more than the lease, so the votes are over. A gives back what it has, which is nothing "+
			"any more.",
			"T2-T1 超过了租约，票已经过期。A 归还它有的，而它什么都没有了。")
		return
	}
	p.ShowClash("A counts three votes that were over before the last answer came.", "A 数的三票，在最后一个应答到来之前就过期了。")
}

// d14time lets 12 s pass, on A's clock too.
func d14time(p *play.Play, a *voter, nodes []*play.Redis) {
	p.Helper()
	a.ahead.Store(int64(12 * time.Second))
	for _, node := range nodes {
		node.EndKey(key)
	}
	p.Fate("12 s pass, and A's keys of 10 s end (the lab shortens the wait, and moves A's clock on).",
		"12 秒过去，A 那些 10 秒的键到期了（实验缩短了等待，并把 A 的时钟拨快）。")
}

// d14everywhere is a vote whose answer is lost.
func d14everywhere(p *play.Play, nodes []*play.Redis, on bool) {
	rules := allRules
	rules.Everywhere = on
	a, b := d14act(p, nodes, rules,
		pick(on, "with it: to all nodes", "why release everywhere? without it: where the answer was OK"),
		pick(on, "保留：发给所有节点", "为什么要在所有节点上释放？去掉：只在应答 OK 的节点上释放"))
	a.reaches(nodes, 1, 2, 3)
	b.reaches(nodes, 1, 2, 3)
	p.Fate("Nodes 4 and 5 are cut off, and the next answer of node 3 to A will be lost.",
		"节点 4、5 被断开；节点 3 对 A 的下一个应答会丢失。")
	a.lines[2].LoseAnswer()
	a.tries(false, 30*time.Second)
	left := nodes[2].Value(key)()
	b.tries(on, 30*time.Second)
	if on {
		p.Show(left == "", "Node 3 is free again, and B has a majority.", "节点 3 又空了，B 拿到了多数。")
		return
	}
	p.Show(left == "A",
		"Nobody has the lock, and nobody gets it until A's 30 s on node 3 are over. It voted for A, and A does not "+
			"know.",
		"没有人持有锁，而在 A 在节点 3 上的 30 秒到期之前，谁也拿不到：它投了 A 的票，A 却不知道。")
}

// d14value is the random value that one article makes for each node.
func d14value(p *play.Play, nodes []*play.Redis, on bool) {
	rules := allRules
	rules.OneValue = on
	a, b := d14act(p, nodes, rules,
		pick(on, "with it: the same value everywhere", "one value for all nodes; without it: each has its own"),
		pick(on, "保留：处处同一个值", "所有节点用同一个值。去掉：每个节点各用各的"))
	a.dial(addrs(nodes))
	b.dial(addrs(nodes))
	a.tries(true, 30*time.Second)
	a.lock.Unlock(p.Context())
	a.Believes(false, "is done, and has released on all nodes.", "干完了，已在所有节点上释放。")
	b.tries(on, 30*time.Second)
	if on {
		p.ShowAlone("One value, one release: all nodes are free at once.", "一个值，一次释放：所有节点立刻都空了。")
		return
	}
	p.Show(nodes[0].Value(key)() == "A/1" && nodes[3].Value(key)() == "A/4" && nodes[4].Value(key)() != "A/5",
		"A remembers the last value, which frees one node of five. The other four stay locked for 30 s, for nobody.",
		"A 只记住最后一个值，只释放了五个节点中的一个。另外四个还要锁 30 秒，却没有主人。")
}

// d14slow is a client whose node 2 is slow: it carries out what it is told, and the answer does not come.
func d14slow(p *play.Play, a *voter, nodes []*play.Redis) (slow *servers.Proxy) {
	p.Helper()
	slow = servers.NewProxy(p, nodes[1].Addr())
	all := addrs(nodes)
	all[1] = slow.Addr()
	a.dial(all)
	slow.BlackHole(servers.ToClient)
	p.Fate("Node 2 becomes slow: its answers take 12 s.", "节点 2 变慢了：它的应答要 12 秒才到。")
	return slow
}

// d14inTurn asks one node after the other, for however long that takes.
func d14inTurn(p *play.Play, nodes []*play.Redis) {
	a, _ := d14act(p, nodes, allRules, "no node may keep the client waiting; without it: in turn, as long as it takes",
		"不让一个节点拖住客户端。去掉：逐个询问，等多久都等")
	slow := d14slow(p, a, nodes)
	var ok bool
	done := make(chan struct{})
	go func() { // ends when node 2 has answered
		defer close(done)
		_, ok = a.lock.TryLock(p.Context(), "A", 10*time.Second)
	}()
	nodes[1].Await(key, 1)
	d14time(p, a, nodes[:2])
	slow.Pass()
	<-done
	a.Got(false, ok, nil)
	p.Show(!ok, "All five have voted for A, and A must give the lock back: one slow node has eaten the lease. "+
		"Until it is well, nobody gets the lock.",
		"五个节点都投了 A，A 却只能归还：一个慢节点耗掉了整个租约。它恢复之前，谁也拿不到锁。")
}

// nodeTime is what a node may take; the algorithm says 5 to 50 ms, and this is for busy machines.
const nodeTime = 2 * time.Second

func d14limited(p *play.Play, nodes []*play.Redis) {
	rules := allRules
	rules.NodeTime = nodeTime
	a, _ := d14act(p, nodes, rules, "with it: at most 2 s for each node", "保留：每个节点最多等 2 秒")
	d14slow(p, a, nodes)
	a.tries(true, 10*time.Second)
	p.Show(true, "Four of five are enough, and the slow one costs 2 s of the lease.", "五个里有四个就够了，慢节点只花掉租约里的 2 秒。")
}

// pick returns one of two texts.
func pick(first bool, one, other string) string {
	if first {
		return one
	}
	return other
}

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
	p.AwaitAll(all, "interlock:mutex:"+key, 1)
	a.Says("TryLock: all nodes have voted for it, and it has heard of no vote.", "TryLock：所有节点都投了它的票，它一票也没收到。")
	p.AwaitAll(all, "interlock:mutex:"+key, 0)
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
