package experiment

import (
	"errors"
	"time"

	"github.com/interlock-go/interlock/lab/exhibit/d08hash"
	"github.com/interlock-go/interlock/lab/exhibit/d08redisson"
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

// More of what the class around D8's scripts does.

// d08lasting is a wait that changes the lease of all later holds.
func d08lasting(p *play.Play, server *play.Redis) {
	p.Act("tryLock(5 s) changes the lease for ever", "tryLock(5 s) 从此改变租约")
	a := d08cast(p, server, "A")[0]
	got, err := a.lock.TryLockFor(p.Context(), 5*time.Second)
	a.Got(true, got, err)
	a.Freed(a.lock.Unlock(p.Context()))
	p.Say("Later, A takes the lock by lock(), whose lease is 30 s.", "后来 A 用 lock() 加锁，租约本该是 30 秒。")
	a.Got(true, a.lock.Lock(p.Context()) == nil, nil)
	left, _ := server.Look("TTL", key).(int64)
	p.Show(left > 0 && left <= 5, "It is 5 s now: the time to wait was stored in the object.", "现在是 5 秒：等待时间被存进了对象里。")
}

// d08thread is one object that two threads use: the owner is computed where it is made.
func d08thread(p *play.Play, server *play.Redis) {
	p.Act("the owner is who made the object", "所有者是创建对象的线程")
	cast := d08cast(p, server, "A", "B")
	a, b := cast[0], cast[1]
	p.Say("A and B are threads of one process, and share one object. A has made it: its owner is A's name.",
		"A 和 B 是同一个进程里的两个线程，共用一个对象。对象是 A 创建的，所有者就是 A 的名字。")
	shared := d08hash.New(b.lock.Conn, key, a.lock.Owner)
	shared.Sleep, shared.After = b.lock.Sleep, b.lock.After
	a.Got(true, a.lock.Lock(p.Context()) == nil, nil)
	b.Got(true, shared.Lock(p.Context()) == nil, nil)
	p.ShowClash("To the server B is A, who re-enters. Between threads of one process there is no lock at all.",
		"在服务器看来 B 就是 A，是重入。同一个进程的线程之间根本没有锁。")
	a.Freed(a.lock.Unlock(p.Context()))
	b.Freed(shared.Unlock(p.Context()))
}

// d08silent is a renewal that fails once.
func d08silent(p *play.Play, server *play.Redis) {
	p.Act("a renewal that fails is the last one", "一次续期失败，就再也没有续期")
	cast := d08cast(p, server, "A", "B")
	a, b := cast[0], cast[1]
	line := a.Line(server.Addr(), "")
	a.lock.Conn = line
	a.Got(true, a.lock.Lock(p.Context()) == nil, nil)
	p.Fate("A third of the lease passes. The answer to A's renewal will be lost.", "三分之一的租约过去了。A 这次续期的应答会丢失。")
	line.LoseAnswer()
	a.fire()
	p.Show(len(a.timers) == 0, "The timer does not start the next one, and tells nobody.", "定时器没有启动下一个，也没有告诉任何人。")
	server.TimePasses(key, "30 s pass (the lab shortens the wait). A works on, and believes that it is renewed.",
		"30 秒过去了（实验缩短了等待）。A 还在干活，以为一直在续期。")
	got, err := b.lock.TryLock(p.Context())
	b.Got(true, got, err)
	p.ShowClash(
		"One lost answer, and A is overtaken without a word. interlock tries again, and tells its holder in time.",
		"只丢了一次应答，A 就在毫不知情中被别人取代。interlock 会重试，并及时告诉持有者。")
}

// Redisson's lock as it is in Redis, and interlock's beside it.

// The clients' UUIDs begin with their names.
const (
	uuidA = "aaaaaaaa-0000-4000-8000-000000000001"
	uuidB = "bbbbbbbb-0000-4000-8000-000000000002"
	uuidC = "cccccccc-0000-4000-8000-000000000003"
)

// d08jvm is an actor with its lock. When it is woken it does nothing before its turn, so that the lab chooses who is
// heard first.
type d08jvm struct {
	caller
	lock *d08redisson.Lock
	link *play.Link

	waiting, woken, turn chan struct{}
}

func d08rlock(p *play.Play, server *play.Redis, name, uuid string) *d08jvm {
	p.Helper()
	c := &d08jvm{
		caller:  newCaller(p.Actor(name)),
		waiting: make(chan struct{}, 1), woken: make(chan struct{}, 1), turn: make(chan struct{}),
	}
	c.link = c.Dial(server.Addr(), "")
	c.link.Differs(func(reply any) string {
		if left, is := reply.(int64); is && left > 1 { // other answers are nil, 0 and 1
			return "ms left"
		}
		return ""
	})
	c.lock = &d08redisson.Lock{
		Conn: c.link, Key: key, Client: uuid, Thread: 1, Subscribe: c.Subscriber(server.Addr()),
		Waiting: func() { c.waiting <- struct{}{} },
		Woken: func() {
			c.woken <- struct{}{}
			select {
			case <-c.turn:
				c.Heard(c.lock.Channel(), "0")
			case <-p.Context().Done():
			}
		},
	}
	return c
}

// d08rlocks begins an act of Redisson's lock.
func d08rlocks(p *play.Play, server *play.Redis) (a, b, c *d08jvm) {
	p.Helper()
	server.Ask("DEL", key)
	p.Watch("Redis", func() string { return server.Field(key) })
	return d08rlock(p, server, "A", uuidA), d08rlock(p, server, "B", uuidB), d08rlock(p, server, "C", uuidC)
}

// tries takes the lock, which is free or the thread's own.
func (c *d08jvm) tries(p *play.Play) {
	p.Helper()
	got, _, err := c.lock.TryLock(p.Context())
	c.Got(true, got, err)
}

// refused tries a lock that another has.
func (c *d08jvm) refused(p *play.Play) {
	p.Helper()
	got, _, err := c.lock.TryLock(p.Context())
	c.Got(false, got, err)
}

// d08format is what Redisson's lock is in Redis.
func d08format(p *play.Play, server *play.Redis) {
	p.Act("Redisson's own form: a hash, UUID:thread, a count", "Redisson 自己的格式：Hash、UUID:线程、次数")
	a, b, _ := d08rlocks(p, server)
	p.Say("The scripts are the lab's own words, the commands Redisson's. To lock: EXISTS and HEXISTS, then HINCRBY "+
		"and PEXPIRE; nil is yes, and a number is PTTL. "+
		"To release: HEXISTS, HINCRBY, then PEXPIRE, or DEL and PUBLISH.",
		"脚本是实验自己写的，命令和 Redisson 的一样。加锁：EXISTS 和 HEXISTS，然后 HINCRBY 和 PEXPIRE；返回 nil 是拿到，返回数字是 PTTL。"+
			"释放：HEXISTS、HINCRBY，然后 PEXPIRE，或者 DEL 和 PUBLISH。")
	a.tries(p)
	a.tries(p)
	server.Look("HGETALL", key)
	b.refused(p)
	other := *a.lock
	other.Thread = 2
	got, left, err := other.TryLock(p.Context())
	p.Show(err == nil && !got && left > 0,
		"Another thread of A is another owner, and is refused as B is. The lock of D8.7 had no such name.",
		"A 的另一个线程是另一个所有者，和 B 一样被拒绝。D8.7 的锁没有这样的名字。")
	renewed, err := a.lock.Renew(p.Context())
	p.Show(err == nil && renewed, "At each third of the 30 s a watchdog renews, once for each lock: HEXISTS, PEXPIRE.",
		"每过 30 秒的三分之一，看门狗为每把锁续期一次：HEXISTS、PEXPIRE。")
	p.Show(errors.Is(b.lock.Unlock(p.Context()), d08redisson.ErrNotOwner),
		"B cannot release what is A's.", "B 无法释放 A 的锁。")
	if err := a.lock.Unlock(p.Context()); err != nil {
		p.Fatal(err)
	}
	a.Freed(a.lock.Unlock(p.Context()))
	p.Show(server.Look("EXISTS", key) == int64(0),
		"Owner, count and lease are where the lock is, and each call is one step: this part is sound.",
		"所有者、次数和租约都在锁所在的地方，每次调用都是一步：这部分是可靠的。")
}

// d08order is a release that all waiters hear.
func d08order(p *play.Play, server *play.Redis) {
	p.Act("a release tells everybody, and nobody is next", "释放通知所有人，没有谁是下一个")
	a, b, c := d08rlocks(p, server)
	a.tries(p)
	for _, w := range []*d08jvm{b, c} {
		go func() { w.got <- w.lock.Lock(p.Context()) }() // ends in this act
		w.hears(p, w.waiting)
		p.Mark(story.Waits, w.Name())
	}
	server.Look("PUBSUB", "NUMSUB", b.lock.Channel())
	a.Freed(a.lock.Unlock(p.Context()))
	b.hears(p, b.woken)
	c.hears(p, c.woken)
	p.Fate("Both are woken and try again; the lab lets C, who came later, be the first.", "两个人都被唤醒，都要再试一次；实验让后来的 C 先试。")
	c.goesOn(p, c.turn)
	c.locked(p)
	p.Mark(story.Woken, "B")
	b.goesOn(p, b.turn)
	b.hears(p, b.waiting)
	p.Show(len(b.got) == 0,
		"The key says who has the lock, and not who waits. B came first, and waits for as long as others are quicker.",
		"键里写着谁持有锁，没有写谁在等。B 先来，但只要别人更快，它就得一直等。")
	c.Freed(c.lock.Unlock(p.Context()))
	b.hears(p, b.woken)
	b.goesOn(p, b.turn)
	b.locked(p)
	b.Freed(b.lock.Unlock(p.Context()))
}

// d08token is a holder that is overtaken.
func d08token(p *play.Play, server *play.Redis) {
	p.Act("no token: a late write looks like any other", "没有令牌：迟到的写入看不出来")
	server.Ask("SET", "number", "10")
	a, b, _ := d08rlocks(p, server)
	a.tries(p)
	a.link.Must("GET", "number")
	a.StandStill()
	server.TimePasses(key,
		"30 s pass without a renewal: the watchdog is part of A's program (the lab shortens the wait).",
		"30 秒里没有续期：看门狗就在 A 的程序里（实验缩短了等待）。")
	b.tries(p)
	b.link.Must("GET", "number")
	b.link.Must("SET", "number", "8")
	a.GoOn()
	a.link.Must("SET", "number", "9")
	p.ShowClash(
		"The answer was nil to both. No number grew in between, so the resource takes A's write: B's sale is lost.",
		"两方得到的应答都是 nil，没有一个变大的数，所以资源接受了 A 的写入：B 的销售丢了。")
	p.Show(errors.Is(a.lock.Unlock(p.Context()), d08redisson.ErrNotOwner),
		"A learns of it at its release.", "A 到释放时才知道。")
	a.Believes(false, "has lost the lock.", "锁已丢失。")
	b.Freed(b.lock.Unlock(p.Context()))
	p.Say("For both Redisson has other classes: getFairLock keeps an order, getFencedLock gives a token.",
		"这两样 Redisson 有另外的类：getFairLock 保持顺序，getFencedLock 给出令牌。")
}

// d08own is interlock's form in the same events.
func d08own(p *play.Play, server *play.Redis) {
	const own = "interlock:mutex:" + key
	server.Ask("DEL", key)
	var all []*play.Process
	for _, name := range []string{"A", "B", "C"} {
		all = append(all, p.Process(name, server.URL(), key, 30*time.Second))
	}
	a, b, c := all[0], all[1], all[2]
	a.Lock()
	p.Show(server.LookFor("words", "GET", own) != nil,
		"While nobody waits it is a string of words: the format's version, the request, its token, when it was "+
			"granted, what was asked for, and who has it.",
		"没有人等待时，它是一串词：格式版本、请求、令牌、何时授予、请求的内容、谁持有。")
	b.BeginLock()
	c.BeginLock()
	server.Look("TYPE", own)
	server.Look("HMGET", own, "v", "a", "z")
	before := server.Calls("publish")
	a.Unlock()
	b.Granted()
	p.Show(server.Calls("publish")-before == 1,
		"With waiters it is a hash that has the queue in it, from a to z. The release gave the lock to B in the same "+
			"step, by one PUBLISH to B's process.",
		"有人等待时它是一个 Hash，队列在里面，从 a 到 z。释放在同一步里把锁交给 B，只向 B 的进程发一次 PUBLISH。")
	p.Show(b.Newer(a), "B's token is larger than A's: a resource can tell. D5 shows how it refuses.",
		"B 的令牌比 A 的大：资源能分辨。D5 演示它怎样拒绝。")
	b.Unlock()
	c.Granted()
	c.Unlock()
	p.ShowAlone("C came last and was last. Never were two inside.", "C 最后来，最后拿到。任何时刻都没有两个人同时在里面。")
}
