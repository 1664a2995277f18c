package experiment

import (
	"errors"
	"time"

	"github.com/interlock-go/interlock/lab/exhibit/d08redisson"
	"github.com/interlock-go/interlock/lab/internal/play"
	"github.com/interlock-go/interlock/lab/internal/story"
)

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
