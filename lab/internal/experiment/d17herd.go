package experiment

import (
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/interlock-go/interlock/lab/exhibit/d17queue"
	"github.com/interlock-go/interlock/lab/internal/play"
	"github.com/interlock-go/interlock/lab/internal/story"
)

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
