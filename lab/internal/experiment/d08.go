package experiment

import (
	"errors"
	"time"

	"github.com/interlock-go/interlock/lab/exhibit/d08hash"
	"github.com/interlock-go/interlock/lab/internal/play"
	"github.com/interlock-go/interlock/lab/internal/story"
)

func d08() *Experiment {
	return &Experiment{
		ID: "D8", Title: story.T("re-entry by a hash and scripts, renewed by a timer", "用 Hash 加 Lua 实现可重入，定时器续期"),
		Needs: []string{"redis"},
		About: story.T("The server counts the holds, atomically: this part is sound. The class that the article "+
			"builds around the scripts is not: tryLock never says no, the time to wait becomes the lease, "+
			"lockInterruptibly returns without the lock, each re-entry starts one more timer that nothing cancels, "+
			"and a renewal that fails is the last. Its owner is the thread that made the object. Redisson's "+
			"own RLock follows: sound in each step, without an order of those who wait and without a token.",
			"由服务器原子地记重入次数，这部分是可靠的。不可靠的是文章在脚本外面写的类：tryLock 从不返回 false；等待时间被当成租约；"+
				"lockInterruptibly 没拿锁就返回；每次重入多开一个定时器，谁也不取消它；一次续期失败就不再续期；所有者是创建对象的线程。"+
				"后面是 Redisson 自己的 RLock：每一步都可靠，但等待者没有顺序，也没有令牌。"),
		run: func(p *play.Play) {
			server := p.Redis()
			d08scripts(p, server)
			d08tryLock(p, server)
			d08wait(p, server)
			d08interruptibly(p, server)
			d08timers(p, server)
			d08lasting(p, server)
			d08thread(p, server)
			d08silent(p, server)
			d08format(p, server)
			d08order(p, server)
			d08token(p, server)
			p.Sound("try, wait half a second, re-enter", "尝试一次、等半秒、重入")
			p.Answers(1, 2, 3, 4, 5, 6, 7, 8)
			d08sound(p, server)
			p.Sound("interlock's own form: a queue and a token", "interlock 自己的格式：队列和令牌")
			p.Answers(9, 10, 11)
			d08own(p, server)
		},
	}
}

// d08client is an actor with its lock. Its timers are started by the lab.
type d08client struct {
	*play.Actor
	lock   *d08hash.Lock
	timers []func()
}

func d08cast(p *play.Play, server *play.Redis, names ...string) []*d08client {
	p.Helper()
	server.Ask("DEL", key)
	p.Watch("Redis", func() string { return server.Field(key) })
	var all []*d08client
	for _, name := range names {
		c := &d08client{Actor: p.Actor(name)}
		c.lock = d08hash.New(c.Dial(server.Addr(), ""), key, name)
		c.lock.Sleep = func(time.Duration) {}
		c.lock.After = func(_ time.Duration, f func()) { c.timers = append(c.timers, f) }
		all = append(all, c)
	}
	return all
}

// fire lets all timers that run now go off.
func (c *d08client) fire() {
	due := c.timers
	c.timers = nil
	for _, f := range due {
		f()
	}
}

func d08scripts(p *play.Play, server *play.Redis) {
	p.Act("the scripts by themselves", "脚本本身")
	cast := d08cast(p, server, "A", "B")
	a, b := cast[0], cast[1]
	got, err := a.lock.TryLock(p.Context())
	a.Got(true, got, err)
	got, err = a.lock.TryLock(p.Context())
	p.Show(err == nil && got, "A re-enters.", "A 重入。")
	server.Look("HGETALL", key)
	p.Show(errors.Is(b.lock.Unlock(p.Context()), d08hash.ErrNotOwner), "B cannot release what is A's.", "B 无法释放 A 的锁。")
	if err := a.lock.Unlock(p.Context()); err != nil {
		p.Fatal(err)
	}
	a.Freed(a.lock.Unlock(p.Context()))
	p.Show(server.Look("EXISTS", key) == int64(0), "Two holds, two releases: the lock is free. The scripts are sound.",
		"两次加锁，两次释放：锁空了。脚本是可靠的。")
}

func d08tryLock(p *play.Play, server *play.Redis) {
	p.Act("tryLock never says no", "tryLock 从不返回 false")
	cast := d08cast(p, server, "A", "B")
	a, b := cast[0], cast[1]
	a.Got(true, a.lock.Lock(p.Context()) == nil, nil)
	var got bool
	var err error
	loop := b.UntilNth("EVAL", 5, func() { got, err = b.lock.TryLock(p.Context()) })
	p.Show(true,
		"B called tryLock, which is to answer at once. It has asked the server four times and has not answered yet.",
		"B 调用的 tryLock 本该立即返回。它已经问了服务器四次，还没有返回。")
	a.Freed(a.lock.Unlock(p.Context()))
	loop.Resume()
	b.Got(true, got, err)
	p.ShowAlone("It answers when it can say yes. It is a Lock with another name.", "直到拿到锁它才返回：不过是换了名字的 lock。")
}

func d08wait(p *play.Play, server *play.Redis) {
	p.Act("tryLock(500 ms): the time to wait becomes the lease", "tryLock(500 ms)：等待时间被当成租约")
	cast := d08cast(p, server, "A", "B")
	for _, c := range cast {
		got, err := c.lock.TryLockFor(p.Context(), 500*time.Millisecond)
		c.Got(true, got, err)
	}
	p.ShowClash("500 ms are 0 whole seconds, and EXPIRE 0 deletes the key at once. Everybody gets the lock.",
		"500 毫秒向下取整到秒是 0 秒，而 EXPIRE 0 会立刻删掉键。谁来都能拿到锁。")
	p.Show(server.Look("EXISTS", key) == int64(0), "The server has never kept it.", "服务器里根本没有这把锁。")
}

func d08interruptibly(p *play.Play, server *play.Redis) {
	p.Act("lockInterruptibly has no body", "lockInterruptibly 是空方法")
	cast := d08cast(p, server, "A", "B")
	a, b := cast[0], cast[1]
	a.Got(true, a.lock.Lock(p.Context()) == nil, nil)
	b.Got(true, b.lock.LockInterruptibly(p.Context()) == nil, nil)
	p.ShowClash("B's lockInterruptibly returned without an error, and without a word to the server.",
		"B 的 lockInterruptibly 没有报错就返回了，也没有和服务器说过一句话。")
}

func d08timers(p *play.Play, server *play.Redis) {
	p.Act("a timer for each re-entry, and none is cancelled", "每次重入一个定时器，没有一个被取消")
	a := d08cast(p, server, "A")[0]
	for range 3 {
		if err := a.lock.Lock(p.Context()); err != nil {
			p.Fatal(err)
		}
	}
	p.Show(len(a.timers) == 3, "Three holds, %d timers.", "三层持有，%d 个定时器。", len(a.timers))
	for range 3 {
		if err := a.lock.Unlock(p.Context()); err != nil {
			p.Fatal(err)
		}
	}
	p.Show(len(a.timers) == 3, "All is released, and there are still %d timers.", "全部释放之后，还有 %d 个定时器。", len(a.timers))
	if err := a.lock.Lock(p.Context()); err != nil {
		p.Fatal(err)
	}
	p.Fate("A takes the lock once more. A third of the lease passes: the timers go off.", "A 又加了一次锁。三分之一的租约过去，定时器触发。")
	a.fire()
	p.Show(len(a.timers) == 4,
		"One hold, and %d renewals each third of the lease, for as long as A has the lock: one more with each time.",
		"只有一层持有，每三分之一租约却有 %d 次续期：每加一次锁，就再多一次。", len(a.timers))
}

func d08sound(p *play.Play, server *play.Redis) {
	server.Ask("DEL", key)
	a, b := p.Process("A", server.URL(), key, lease), p.Process("B", server.URL(), key, lease)
	a.Lock()
	p.Show(!b.TryLock(), "A try says no, at once.", "尝试失败，立即返回。")
	refused := !b.LockFor(500 * time.Millisecond)
	p.AwaitNoWaiters(server.URL(), key)
	p.Show(refused,
		"A wait of 500 ms says no after 500 ms, and leaves nothing behind. It has nothing to do with the lease.",
		"等 500 毫秒就在 500 毫秒后返回失败，什么都不留下。它和租约无关。")
	p.Show(a.Reenter(), "A re-enters.", "A 重入。")
	sent := 0
	for range 3 { // a renewal that a busy machine answers late is sent once more
		before := server.Scripts()
		a.Renewed(4)
		if sent = server.Scripts() - before; sent <= 6 {
			break
		}
	}
	p.Show(sent <= 6, "Two holds and four renewals: %s scripts. One timer per client serves all its locks.",
		"两层持有，四次续期：%s 个脚本。每个客户端只有一个定时器，管它所有的锁。", story.Volatile(sent, "few"))
	a.Leave()
	p.Show(a.Unlock(), "All is released; nothing renews what nobody holds.", "全部释放；没人持有的锁不会再被续期。")
	p.ShowAlone("Never were two inside.", "任何时刻都没有两个人同时在里面。")
}
