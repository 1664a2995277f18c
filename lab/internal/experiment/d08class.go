package experiment

import (
	"time"

	"github.com/interlock-go/interlock/lab/exhibit/d08hash"
	"github.com/interlock-go/interlock/lab/internal/play"
)

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
