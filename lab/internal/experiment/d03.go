package experiment

import (
	"github.com/interlock-go/interlock/lab/exhibit/d03blinddel"
	"github.com/interlock-go/interlock/lab/internal/play"
	"github.com/interlock-go/interlock/lab/internal/story"
)

func d03() *Experiment {
	return &Experiment{
		ID: "D3", Title: story.T("SET NX EX, and a DEL that does not ask", "SET NX EX，加不问是谁的 DEL"),
		Needs: []string{"redis"},
		About: story.T("Lock and expiry are one command now. But the value is the same for everybody, and DEL "+
			"deletes whatever is there: a holder that works for 12 s on a lease of 10 s deletes the lock of the next "+
			"one, and a third gets in.",
			"加锁和过期时间现在是一条命令了。但所有人的值都一样，DEL 不管是谁的都删：持有者拿 10 秒的锁干了 12 秒的活，"+
				"删掉的是下一个人的锁，于是第三个人进来了。"),
		run: func(p *play.Play) {
			server := p.Redis()
			p.Act("the holder overruns its lease", "持有者超过了租约")
			p.Watch("Redis", func() string { return d03holder(server) })
			a, b, c := p.Actor("A"), p.Actor("B"), p.Actor("C")
			lockA := &d03blinddel.Lock{Conn: a.Dial(server.Addr(), ""), Key: key}
			lockB := &d03blinddel.Lock{Conn: b.Dial(server.Addr(), ""), Key: key}
			lockC := &d03blinddel.Lock{Conn: c.Dial(server.Addr(), ""), Key: key}

			got, err := lockA.TryLock(p.Context(), 10)
			a.Got(true, got, err)
			server.TimePasses(key, "10 s pass (the lab shortens the wait: PEXPIRE 1). The lease is over, A works on.",
				"10 秒过去了（实验用 PEXPIRE 1 缩短等待）。租约到期，A 还在干活。")
			got, err = lockB.TryLock(p.Context(), 10)
			b.Got(true, got, err)
			p.Fate("A's 12 s of work are done.", "A 的 12 秒活干完了。")
			a.Freed(lockA.Unlock(p.Context()))
			p.Say("It was B's lock that A deleted.", "A 删掉的其实是 B 的锁。")
			got, err = lockC.TryLock(p.Context(), 10)
			c.Got(true, got, err)
			p.ShowClash(
				"First A and B, then B and C were inside together, and everybody went by the rules of the code.",
				"先是 A 和 B，再是 B 和 C 同时在里面，而每个人都照着代码做了。")
			server.Ask("DEL", key)

			p.Sound("work that outlasts the lease", "干活的时间超过租约")
			d03renewed(p, server)
			p.Sound("the holder stands still and overruns its lease all the same", "持有者停住，还是超过了租约")
			overrun(p, server)
		},
	}
}

// d03holder shows that somebody has the lock: the value does not say who.
func d03holder(server *play.Redis) string {
	if server.Value(key)() == "" {
		return ""
	}
	return "true"
}

// d03renewed is a holder that works longer than its lease.
func d03renewed(p *play.Play, server *play.Redis) {
	p.Helper()
	p.WatchLock("Redis", server.URL(), key)
	a, b := p.Process("A", server.URL(), key, lease), p.Process("B", server.URL(), key, lease)
	a.Lock()
	a.Renewed(5)
	p.Fate("A has worked for longer than its lease; the lease was renewed each third of it.",
		"A 干活的时间超过了租约；每过三分之一租约续期一次。")
	p.Show(!b.TryLock(), "The lock is still A's.", "锁仍然是 A 的。")
	p.Show(a.Unlock(), "A releases its own lock.", "A 释放的是自己的锁。")
	p.Show(b.TryLock(), "Then B gets in.", "然后 B 才进来。")
	b.Unlock()
	p.ShowAlone("Never were two inside.", "任何时刻都没有两个人同时在里面。")
}

// overrun is a holder that stands still until its lease is over, and releases then.
func overrun(p *play.Play, server *play.Redis) {
	p.Helper()
	p.WatchLock("Redis", server.URL(), key)
	a := p.Process("A", server.URL(), key, lease)
	b, c := p.Process("B", server.URL(), key, lease), p.Process("C", server.URL(), key, lease)
	a.Lock()
	a.Stop()
	b.BeginLock()
	b.Granted()
	a.Continue()
	p.Show(!a.Unlock(), "A's Unlock says that the lock was lost, and changes nothing.", "A 的 Unlock 说明锁早已丢失，并且什么都不改变。")
	p.Show(!c.TryLock(), "B's lock is unharmed: C does not get in.", "B 的锁完好无损：C 进不来。")
	b.Unlock()
	p.ShowAlone("Nobody acted as a holder beside another.", "没有人在别人持有时还以持有者的身份行动。")
}
