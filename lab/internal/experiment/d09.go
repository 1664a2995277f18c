package experiment

import (
	"time"

	"github.com/interlock-go/interlock/lab/exhibit/d09replica"
	"github.com/interlock-go/interlock/lab/exhibit/d10redlock"
	"github.com/interlock-go/interlock/lab/internal/play"
	"github.com/interlock-go/interlock/lab/internal/story"
)

func d09() *Experiment {
	return &Experiment{
		ID: "D9", Title: story.T("the primary dies before its replica has the key", "主节点在副本拿到键之前崩溃"),
		Needs: []string{"redis"},
		About: story.T("Redis answers a client before its replicas have the write. If the primary dies in between, "+
			"the new one knows nothing of the lock and grants it again. Three things help, each at its price: wait "+
			"for the replicas before a grant counts, ask a majority of independent servers (Redlock), or have the "+
			"resource check a token.",
			"Redis 在副本拿到写入之前就应答客户端。主节点如果这时崩溃，新的主节点不知道这把锁，会再授予一次。有三种办法，各有代价："+
				"等副本确认之后才算拿到锁；向多数独立的服务器加锁（Redlock）；让资源检查令牌。"),
		run: func(p *play.Play) {
			d09lost(p)
			d09redlock(p)
			p.Sound("interlock's Redlock: one of five dies", "interlock 的 Redlock：五个节点崩溃一个")
			d09quorum(p)
			p.Sound("wait for the replica before the grant counts (?replicas=1)", "等副本确认之后才算拿到（?replicas=1）")
			p.Answers(1)
			d09wait(p)
			p.Fenced("without waiting: the fence refuses the old holder", "不等副本：由围栏拒绝旧的持有者")
			p.Answers(1)
			d09fence(p)
		},
	}
}

func d09lost(p *play.Play) {
	p.Act("a failover forgets the lock", "故障转移忘掉了锁")
	pair := p.Pair()
	p.Watch("primary", pair.Primary.Value(key))
	p.Watch("replica", pair.Replica.Value(key))
	a, b := p.Actor("A"), p.Actor("B")
	lockA := &d09replica.Lock{Conn: a.Dial(pair.Primary.Addr(), "primary"), Key: key}
	pair.Cut()
	got, err := lockA.TryLock(p.Context(), "A", 30*time.Second)
	a.Got(true, got, err)
	pair.FailOver()
	lockB := &d09replica.Lock{Conn: b.Dial(pair.Replica.Addr(), "replica, now primary"), Key: key}
	got, err = lockB.TryLock(p.Context(), "B", 30*time.Second)
	b.Got(true, got, err)
	p.ShowClash("The new primary has never heard of A.", "新的主节点从没听说过 A。")
}

// d09redlock is the same death among five servers: here the textbook's Redlock holds. D10 shows when it does not.
func d09redlock(p *play.Play) {
	p.Act("Redlock: one of five dies", "Redlock：五个节点崩溃一个")
	nodes := fiveNodes(p)
	a, b := p.Actor("A"), p.Actor("B")
	lockA := &d10redlock.Lock{Nodes: toAll(a, nodes), Key: key}
	_, ok := lockA.TryLock(p.Context(), "A", 30*time.Second)
	a.Got(true, ok, nil)
	links := toAll(b, nodes)
	nodes[0].Kill()
	p.Fate("Node 1 is killed (kill -9).", "节点 1 被杀死（kill -9）。")
	lockB := &d10redlock.Lock{Nodes: links, Key: key}
	_, ok = lockB.TryLock(p.Context(), "B", 30*time.Second)
	b.Got(false, ok, nil)
	p.ShowAlone("Four nodes still know A, and B needs three. No single server's memory decides.",
		"还有四个节点知道 A，而 B 需要三个。不由任何一台服务器的记忆说了算。")
}

func d09quorum(p *play.Play) {
	all := fiveMore(p)
	url := redlock(addrs(all))
	a, b := p.Process("A", url, key, 2*lease), p.Process("B", url, key, 2*lease)
	a.Lock()
	all[0].Kill()
	p.Fate("Node 1 is killed (kill -9).", "节点 1 被杀死（kill -9）。")
	p.Show(!b.TryLock(), "A majority knows A.", "多数节点知道 A。")
	a.Renewed(2)
	p.Show(a.Unlock(), "A's lease was renewed by four nodes, and its release confirmed.", "四个节点给 A 续了期，释放也得到了确认。")
	b.Lock()
	p.Show(b.Unlock(), "Then B gets in.", "然后 B 才进来。")
	p.ShowAlone("Never were two inside, and nobody waited for node 1.", "任何时刻都没有两个人同时在里面，也没有人等节点 1。")
}

func d09wait(p *play.Play) {
	pair := p.Pair()
	old := p.Process("A", pair.Primary.URL()+"?replicas=1&replica-timeout=500ms", key, lease)
	pair.Cut()
	p.Show(!old.TryLock(), "The replica has not acknowledged it, so A's grant does not count, and A is told.",
		"副本没有确认，A 的加锁不算数，A 也被如实告知。")
	pair.FailOver()
	p.WatchLock("replica", pair.Replica.URL(), key)
	b := p.Process("B", pair.Replica.URL(), key, lease)
	p.Show(b.TryLock(), "B gets the lock from the new primary.", "B 从新的主节点拿到锁。")
	p.ShowAlone("Never were two inside. The price: while the replica is away, nobody gets the lock.",
		"任何时刻都没有两个人同时在里面。代价：副本不在时，谁也拿不到锁。")
	b.Unlock()
}

func d09fence(p *play.Play) {
	pair := p.Pair()
	a := p.Process("A", pair.Primary.URL(), key, 2*lease)
	goods := p.Resource(p.Redis(), 10, a)
	pair.Cut()
	a.Lock()
	goods.Read(a)
	pair.FailOver()
	b := p.Process("B", pair.Replica.URL(), key, 2*lease)
	goods.Connect(b)
	p.Show(b.TryLock(), "The new primary has never heard of A. Until A's lease runs out, two believe to hold the lock.",
		"新的主节点从没听说过 A。在 A 的租约到期之前，两个人都认为自己持有锁。")
	goods.Read(b)
	p.Show(goods.Write(b, 8),
		"B sells two pieces. Its token is larger although the new primary never saw A's: it is the server's clock "+
			"in microseconds.",
		"B 卖了两件。新的主节点从没见过 A 的令牌，B 的令牌仍然更大：它是服务器时钟的微秒数。")
	p.Show(!goods.Write(a, 9), "A sells one piece: it has not been told of anything.", "A 卖了一件：还没有人告诉它任何事。")
	corrupted(p, goods)
	a.Told()
	p.Show(true, "And A is told within its lease, because nothing confirms its renewals any more.",
		"并且 A 在租约之内得知丢锁，因为续期再也得不到确认。")
	b.Unlock()
}
