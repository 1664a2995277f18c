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
		About: story.T("The recipe: a node with a number for each who comes, the lowest has the lock, each watches "+
			"the one before. Who is woken has to look again, because the one before may have left without having had "+
			"the lock. The lock is as good as the session: a holder that stands still loses it, and writes all "+
			"the same.",
			"标准做法：每个来的人得到一个带编号的节点，编号最小的拿到锁，每个人只监视前面那一个。被叫醒的人必须再看一遍，因为前面的人可能"+
				"没拿到锁就走了。锁的可靠程度取决于会话：停住的持有者会丢掉它，却照样写入。"),
		run: func(p *play.Play) {
			server := p.ZooKeeper()
			d17recipe(p, server)
			d17shortcut(p, server)
			redis := p.Redis()
			p.Fenced("the holder stands still past its session; the resource checks tokens", "持有者停住直到会话过期；资源检查令牌")
			a, b := p.Process("A", server.URL(), key, lease), p.Process("B", server.URL(), key, lease)
			overtaken(p, p.Resource(redis, 10, a, b), a, b)
			p.Sound("Redis and ZooKeeper, measured", "Redis 和 ZooKeeper，实测")
			d17pace(p, redis.URL(), server.URL())
		},
	}
}

// d17client is an actor with a session, and its place in the queue.
type d17client struct {
	*play.Actor
	conn     *zk.Conn
	lock     *d17queue.Lock
	watching chan struct{}
	got      chan error
}

func d17cast(p *play.Play, server *play.ZooKeeper, dir string, shortcut bool) (a, b, c *d17client) {
	p.Helper()
	join := func(name string) *d17client {
		c := &d17client{
			Actor: p.Actor(name), conn: server.Session(), watching: make(chan struct{}, 2), got: make(chan error, 1),
		}
		c.lock = &d17queue.Lock{
			Conn: c.conn, Dir: dir, Shortcut: shortcut,
			Tell: c.tell, Watching: func() { c.watching <- struct{}{} },
		}
		return c
	}
	a, b, c = join("A"), join("B"), join("C")
	if _, err := a.conn.Create(dir, nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
		p.Fatal(err)
	}
	a.Got(true, true, a.lock.Lock(p.Context()))
	b.waits(p)
	c.waits(p)
	return a, b, c
}

func (c *d17client) tell(command, answer string) {
	if answer != "" {
		command += "  →  " + answer
	}
	c.Says("%s", "%s", command)
}

// waits begins to wait, and returns when it does.
func (c *d17client) waits(p *play.Play) {
	go func() { c.got <- c.lock.Lock(p.Context()) }() // ends with the play
	select {
	case <-c.watching:
	case err := <-c.got:
		p.Fatalf("%s does not wait: %v", c.Name(), err)
	}
}

// leaves ends the session, and its node with it.
func (c *d17client) leaves() {
	c.Believes(false, "gives up: its session ends, and its node goes with it.", "放弃了：会话结束，它的节点也随之消失。")
	c.conn.Close()
}

func d17recipe(p *play.Play, server *play.ZooKeeper) {
	p.Act("the recipe, and one who leaves the queue", "标准做法，有人中途离开队列")
	a, b, c := d17cast(p, server, "/lock", false)
	begin := server.Woken()
	b.leaves()
	<-c.watching
	p.ShowAlone("C was woken, looked again, and saw A before it. Now it watches A's node.",
		"C 被叫醒，再看一遍，发现前面还有 A，于是改为监视 A 的节点。")
	a.Believes(false, "is done.", "干完了。") // before it deletes its node, which wakes C
	if err := a.lock.Unlock(); err != nil {
		p.Fatal(err)
	}
	c.Got(true, true, <-c.got)
	woken := server.Woken() - begin
	p.Show(woken == 2, "Two nodes went, and %d clients were woken: each time the next one only.",
		"两个节点消失，一共叫醒 %d 个客户端：每次只叫醒下一个。", woken)
	c.Freed(c.lock.Unlock())
}

func d17shortcut(p *play.Play, server *play.ZooKeeper) {
	p.Act("a shortcut: who is woken takes the lock", "抄近路：被叫醒就当作拿到了锁")
	p.Say("No article does this; it is the mistake that the recipe's last step is there for.",
		"没有文章这样写；标准做法的最后一步正是为了避免这个错误。")
	_, b, c := d17cast(p, server, "/short", true)
	b.leaves()
	c.Got(true, true, <-c.got)
	p.ShowClash("B left without having had the lock, and C takes A's for free.", "B 没拿到锁就走了，C 却以为 A 的锁空了。")
}

// d17pace takes and releases a lock that nobody else wants.
func d17pace(p *play.Play, urls ...string) {
	p.Helper()
	const pairs = 50
	for i, name := range []string{"Redis", "ZooKeeper"} {
		locks, err := interlock.Open(p.Context(), urls[i], nil)
		if err != nil {
			p.Fatal(err)
		}
		pair(p, locks) // the connection is made, and scripts are sent
		begin := time.Now()
		for range pairs {
			pair(p, locks)
		}
		took := time.Since(begin) / pairs
		if err := locks.Close(); err != nil {
			p.Fatal(err)
		}
		p.Say("%s: %d times Lock and Unlock, one after the other: %s each.", "%s：连续 %d 次加锁再释放，每次 %s。", name, pairs,
			story.Volatile(took.Round(time.Microsecond), "time"))
	}
	p.Show(true, "ZooKeeper writes both to its log before it answers; Redis, as it is by default, does not.",
		"ZooKeeper 在回答之前把两者都写进日志；默认配置的 Redis 不会。")
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
