package experiment

import (
	"context"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/lab/exhibit/d17queue"
	"github.com/interlock-go/interlock/lab/internal/play"
	"github.com/interlock-go/interlock/lab/internal/story"
)

func d17() *Experiment {
	return &Experiment{
		ID: "D17", Title: story.T("ZooKeeper: the queue, and a session that ends", "ZooKeeper：排队，以及会话的结束"),
		Needs: []string{"zookeeper", "redis"},
		About: story.T("One node for all wakes everybody who waits: the herd. The recipe gives each who comes a node "+
			"with a number, the lowest has the lock, and each watches the one before. Who is woken has to look again, "+
			"because the one before may have left without having had the lock. The lock is as good as the session: a "+
			"holder that stands still loses it, and writes all the same.",
			"所有人共用一个节点，每次释放会唤醒所有等待者：惊群。标准做法给每个来的人一个带编号的节点，编号最小的拿到锁，每个人只监视前面那"+
				"一个。被唤醒的人必须再看一遍，因为前面的人可能没拿到锁就走了。锁的可靠程度取决于会话：停住的持有者会丢掉它，却照样写入。"),
		run: func(p *play.Play) {
			server := p.ZooKeeper()
			d17herd(p, server)
			d17next(p, server)
			d17recipe(p, server)
			d17shortcut(p, server)
			redis := p.Redis()
			d17stopped(p, server, redis)
			p.Sound("one release wakes one", "一次释放只唤醒一个")
			p.Answers(1, 2, 3, 4)
			d17line(p, server)
			p.Fenced("the holder stands still past its session; the resource checks tokens", "持有者停住直到会话过期；资源检查令牌")
			p.Answers(5)
			a, b := p.Process("A", server.URL(), key, lease), p.Process("B", server.URL(), key, lease)
			overtaken(p, p.Resource(redis, 10, a, b), a, b)
			p.Sound("Redis and ZooKeeper, measured", "Redis 和 ZooKeeper，实测")
			p.Answers(2)
			d17pace(p, redis.URL(), server.URL())
		},
	}
}

// d17client is an actor with a session, and its place in the queue.
type d17client struct {
	caller
	conn     *zk.Conn
	lock     *d17queue.Lock
	watching chan struct{}
}

// d17cast are clients in a queue below dir: the first has the lock, the others wait in this order.
func d17cast(p *play.Play, server *play.ZooKeeper, dir string, shortcut bool, names ...string) []*d17client {
	p.Helper()
	var all []*d17client
	for _, name := range names {
		c := &d17client{
			caller: newCaller(p.Actor(name)), conn: server.Session(), watching: make(chan struct{}, 2),
		}
		c.lock = &d17queue.Lock{
			Conn: c.conn, Dir: dir, Shortcut: shortcut,
			Tell: tellsZooKeeper(c.Actor), Watching: func() { c.watching <- struct{}{} },
		}
		all = append(all, c)
	}
	a := all[0]
	if _, err := a.conn.Create(dir, nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
		p.Fatal(err)
	}
	a.Got(true, true, a.lock.Lock(p.Context()))
	for _, c := range all[1:] {
		c.waits(p)
	}
	return all
}

// tellsZooKeeper tells what an actor says to ZooKeeper, and hears from it.
func tellsZooKeeper(a *play.Actor) func(command, answer string) {
	return func(command, answer string) {
		text, way := play.ZooSaid(command, answer)
		a.Told("ZooKeeper", way, text)
	}
}

// waits begins to wait, and returns when it does.
func (c *d17client) waits(p *play.Play) {
	p.Helper()
	go func() { c.got <- c.lock.Lock(p.Context()) }() // ends with the play
	c.hears(p, c.watching)
	p.Mark(story.Waits, c.Name())
}

// leaves ends the session, and its node with it.
func (c *d17client) leaves() {
	c.Believes(false, "gives up: its session ends, and its node goes with it.", "放弃了：会话结束，它的节点也随之消失。")
	c.conn.Close()
}

func d17recipe(p *play.Play, server *play.ZooKeeper) {
	p.Act("the recipe, and one who leaves the queue", "标准做法，有人中途离开队列")
	cast := d17cast(p, server, "/lock", false, "A", "B", "C")
	a, b, c := cast[0], cast[1], cast[2]
	begin := server.Woken()
	b.leaves()
	c.hears(p, c.watching)
	p.ShowAlone("C was woken, looked again, and saw A before it. Now it watches A's node.",
		"C 被唤醒，再看一遍，发现前面还有 A，于是改为监视 A 的节点。")
	a.Believes(false, "is done.", "干完了。") // before it deletes its node, which wakes C
	if err := a.lock.Unlock(); err != nil {
		p.Fatal(err)
	}
	c.locked(p)
	woken := server.Woken() - begin
	p.Show(woken == 2, "Two nodes went, and %d clients were woken: each time the next one only.",
		"两个节点消失，一共唤醒 %d 个客户端：每次只唤醒下一个。", woken)
	c.Freed(c.lock.Unlock())
}

func d17shortcut(p *play.Play, server *play.ZooKeeper) {
	p.Act("a shortcut: who is woken takes the lock", "抄近路：被唤醒就当作拿到了锁")
	p.Say("No article does this; it is the mistake that the recipe's last step is there for.",
		"没有文章这样写；标准做法的最后一步正是为了避免这个错误。")
	cast := d17cast(p, server, "/short", true, "A", "B", "C")
	b, c := cast[1], cast[2]
	b.leaves()
	c.locked(p)
	p.ShowClash("B left without having had the lock, and C takes A's for free.", "B 没拿到锁就走了，C 却以为 A 的锁空了。")
}

// d17pace takes and releases a lock that nobody else wants.
func d17pace(p *play.Play, urls ...string) {
	p.Helper()
	const pairs = 50
	for i, name := range []string{"Redis", "ZooKeeper"} {
		paces(p, p.Tap("client", urls[i]), 1) // what it sends; by way of the lab it is slower
		p.Say("%s: %d times Lock and Unlock, one after the other: %s each.", "%s：连续 %d 次加锁再释放，每次 %s。", name, pairs,
			story.Volatile(paces(p, urls[i], pairs).Round(time.Microsecond), "time"))
	}
	p.Show(true, "ZooKeeper writes both to its log before it answers; Redis, as it is by default, does not.",
		"ZooKeeper 在应答之前把两者都写进日志；默认配置的 Redis 不会。")
}

// paces returns how long a pair takes, when the connection is made and scripts are sent.
func paces(p *play.Play, url string, pairs int) time.Duration {
	p.Helper()
	locks, err := interlock.Open(p.Context(), url, nil)
	if err != nil {
		p.Fatal(err)
	}
	pair(p, locks)
	begin := time.Now()
	for range pairs {
		pair(p, locks)
	}
	took := time.Since(begin) / time.Duration(pairs)
	if err := locks.Close(); err != nil {
		p.Fatal(err)
	}
	return took
}

func pair(p *play.Play, locks *interlock.Client) {
	p.Helper()
	lease, err := locks.Lock(p.Context(), "pace")
	if err != nil {
		p.Fatal(err)
	}
	if err := lease.Unlock(context.WithoutCancel(p.Context())); err != nil {
		p.Fatal(err)
	}
}

// Who is woken when a lock becomes free: all waiters, or the next.

// d17waiter is an actor that waits for the one node. When it is woken it does nothing before its turn, so that the lab
// chooses who is heard first.
type d17waiter struct {
	caller
	conn *zk.Conn
	lock *d17queue.Fixed

	watching, woken, turn chan struct{}
}

func d17fixed(p *play.Play, server *play.ZooKeeper, name string) *d17waiter {
	p.Helper()
	w := &d17waiter{
		caller: newCaller(p.Actor(name)), conn: server.Session(),
		watching: make(chan struct{}, 1), woken: make(chan struct{}, 1), turn: make(chan struct{}),
	}
	w.lock = &d17queue.Fixed{
		Conn: w.conn, Path: "/one", Tell: tellsZooKeeper(w.Actor),
		Watching: func() { w.watching <- struct{}{} },
		Woken: func() {
			w.woken <- struct{}{}
			select {
			case <-w.turn:
			case <-p.Context().Done():
			}
		},
	}
	return w
}

// waits begins to wait, and returns when it does.
func (w *d17waiter) waits(p *play.Play) {
	p.Helper()
	go func() { w.got <- w.lock.Lock(p.Context()) }() // ends with its session
	w.hears(p, w.watching)
	p.Mark(story.Waits, w.Name())
}

// awake waits until the server has woken them.
func awake(p *play.Play, all ...*d17waiter) {
	p.Helper()
	for _, w := range all {
		w.hears(p, w.woken)
	}
}

// gets is a waiter's turn, at which it gets the lock.
func (w *d17waiter) gets(p *play.Play) {
	p.Helper()
	w.goesOn(p, w.turn)
	w.locked(p)
}

// triesInVain is a waiter that was woken for nothing: it tries, finds another's node, and watches that.
func (w *d17waiter) triesInVain(p *play.Play) {
	p.Helper()
	p.Mark(story.Woken, w.Name())
	w.goesOn(p, w.turn)
	w.hears(p, w.watching)
}

// d17herd is one node that everybody watches.
func d17herd(p *play.Play, server *play.ZooKeeper) {
	p.Act("the herd: everybody watches one node", "惊群：所有人监视同一个节点")
	a, b, c, d := d17fixed(p, server, "A"), d17fixed(p, server, "B"), d17fixed(p, server, "C"), d17fixed(p, server, "D")
	a.Got(true, true, a.lock.Lock(p.Context()))
	waiters := []*d17waiter{b, c, d}
	for _, w := range waiters {
		w.waits(p)
	}
	begin := server.Woken()
	a.Believes(false, "is done.", "干完了。") // before it deletes the node, which wakes them
	if err := a.lock.Unlock(); err != nil {
		p.Fatal(err)
	}
	awake(p, waiters...)
	p.Fate("B, C and D are woken. All try again; the lab lets D, who came last, be the first.",
		"B、C、D 都被唤醒，都要再试一次；实验让最后来的 D 先试。")
	d.gets(p)
	b.triesInVain(p)
	c.triesInVain(p)
	woken := server.Woken() - begin
	p.Show(woken == len(waiters),
		"One node went, and the server has woken %d clients: all who waited. One has the lock, and it is not the one "+
			"that came first.",
		"一个节点消失，服务器唤醒了 %d 个客户端：所有等待者。其中一个拿到锁，而且不是最先来的那个。", woken)
	d.Freed(d.lock.Unlock())
	awake(p, b, c)
	b.gets(p)
	c.triesInVain(p)
	b.Freed(b.lock.Unlock())
	awake(p, c)
	c.gets(p)
	woken = server.Woken() - begin
	p.Show(woken == 6, "Until all three had the lock, %d wake-ups: 3, 2 and 1. D11 counts them with ten.",
		"三个人全部拿到锁，一共唤醒 %d 次：3、2、1。D11 用十个人来数。", woken)
	c.Freed(c.lock.Unlock())
}

// d17next are the same clients in the recipe's queue.
func d17next(p *play.Play, server *play.ZooKeeper) {
	p.Act("the recipe: each watches the one before", "标准做法：每个人只监视前面那一个")
	cast := d17cast(p, server, "/queue", false, "A", "B", "C", "D")
	begin := server.Woken()
	for i, c := range cast[:2] {
		c.Believes(false, "is done.", "干完了。")
		if err := c.lock.Unlock(); err != nil {
			p.Fatal(err)
		}
		cast[i+1].locked(p)
	}
	woken := server.Woken() - begin
	p.Show(woken == 2, "Two grants have cost %d wake-ups: each time the next one's. D has slept on.",
		"两次交接只唤醒了 %d 次：每次只唤醒下一个。D 一直没有被打扰。", woken)
	cast[3].conn.Close() // before C's node goes, which would wake it
}

// d17line is interlock's queue on ZooKeeper.
func d17line(p *play.Play, server *play.ZooKeeper) {
	var all []*play.Process
	for _, name := range []string{"A", "B", "C", "D"} {
		all = append(all, p.Process(name, server.URL(), key, 30*time.Second))
	}
	all[0].Lock()
	server.AwaitWatches(2) // of its own node, and of the lock's until another client asks
	for i, c := range all[1:] {
		c.BeginLock()
		server.AwaitWatches(i + 2)
	}
	begin := server.Woken()
	all[0].Unlock()
	all[1].Granted()
	woken := server.Woken() - begin
	p.Show(woken == 2, "One release: %d messages, one to B, and one to A about its own node. C and D sleep on.",
		"一次释放：%d 条消息，一条给 B，一条给 A，通知它自己的节点已消失。C 和 D 没有被打扰。", woken)
	for i := 1; i < len(all); i++ {
		all[i].Unlock()
		if i+1 < len(all) {
			all[i+1].Granted()
		}
	}
	p.ShowAlone("All had their turn, in the order in which they came. Never were two inside.",
		"所有人按到来的顺序全部轮到。任何时刻都没有两个人同时在里面。")
}

// d17stopped is the recipe in two processes, of which the holder is stopped until the server has ended its session.
func d17stopped(p *play.Play, server *play.ZooKeeper, redis *play.Redis) {
	p.Act("the recipe's holder stands still past its session", "标准做法的持有者停住，直到会话过期")
	a, b := p.Process("A", "", "", 0), p.Process("B", "", "", 0)
	goods := p.Resource(redis, 10, a, b)
	a.Session(server, "/stopped", lease)
	b.Session(server, "/stopped", lease)
	server.Make("/stopped")
	a.Enter()
	goods.Read(a)
	b.BeginEnter()
	a.Stop()
	p.Fate("A's session lasts 4 s without a sign of life. The server ends it, and deletes A's node.",
		"A 的会话在 4 秒没有动静之后，由服务器结束，A 的节点也被删除。")
	b.Entered()
	goods.Read(b)
	p.Show(goods.Write(b, 8), "B has sold two pieces. Its node is younger than A's, and so its token is larger.",
		"B 卖了两件。它的节点比 A 的新，所以令牌更大。")
	p.Show(!goods.Resume(a, 9), "A writes on. The recipe has told it nothing: its call to lock returned long ago.",
		"A 接着写。标准做法没有告诉它任何事：它的加锁调用早就返回了。")
	corrupted(p, goods)
	p.Show(!a.LooksForItsNode(), "Only when A looks does it learn of the end of its session.",
		"只有当 A 自己去看，才知道会话已经结束。")
	b.Leaves()
}
