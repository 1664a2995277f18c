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
