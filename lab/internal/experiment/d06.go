package experiment

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/lab/exhibit/d06getset"
	"github.com/interlock-go/interlock/lab/internal/play"
	"github.com/interlock-go/interlock/lab/internal/story"
)

func d06() *Experiment {
	return &Experiment{
		ID: "D6", Title: story.T("an instant as the value, SETNX, GET, GETSET", "以到期时刻为值：SETNX、GET、GETSET"),
		Needs: []string{"redis"},
		About: story.T("The value is the instant at which the lock ends, by the clock of who took it; whoever finds "+
			"it over takes the lock. With DEL and SETNX two get in; GETSET mends that. What stays: all clocks must "+
			"agree, a loser overwrites the winner's value, so that the winner cannot release, who comes while the "+
			"holder releases leaves a lock that nobody has, and two who write the same instant are one owner.",
			"值是锁的到期时刻，用的是加锁者自己的时钟；谁发现它过期了，谁就来抢。用 DEL 再 SETNX 会放进两个人，GETSET 修好了这一点。"+
				"剩下的问题：所有人的时钟必须一致；没抢到的客户端会覆盖抢到者的值，抢到者因此无法释放；在持有者释放时到来的客户端会留下一把没有主人的锁；写下同一时刻的两个客户端会被当成同一个所有者。"),
		run: func(p *play.Play) {
			server := p.Redis()
			d06del(p, server)
			d06overwritten(p, server)
			d06orphan(p, server)
			d06clocks(p, server)
			d06same(p, server)
			p.Sound("the holder dies, two wait for its lease to end", "持有者崩溃，两个人等租约到期")
			d06sound(p, server)
		},
	}
}

// d06cast are the clients of an act. Their clocks stand, so that the story is the same in every run: at 1000000 ms.
func d06cast(p *play.Play, server *play.Redis, names ...string) ([]*play.Actor, []*d06getset.Lock) {
	p.Helper()
	server.Ask("DEL", key)
	p.Watch("Redis", server.Value(key))
	var actors []*play.Actor
	var locks []*d06getset.Lock
	for _, name := range names {
		a := p.Actor(name)
		actors = append(actors, a)
		locks = append(locks, &d06getset.Lock{
			Conn: a.Dial(server.Addr(), ""), Key: key, Lease: 10 * time.Second, Now: at(1_000_000),
		})
	}
	return actors, locks
}

func at(ms int64) func() time.Time { return func() time.Time { return time.UnixMilli(ms) } }

// d06over plays the race for an overdue lock. P1 dies with it. P3 finds it over, and stands still before the command
// that takes it away. P2 takes it, P3 goes on, and is told what third says.
func d06over(
	p *play.Play, server *play.Redis, try func(*d06getset.Lock, context.Context) (bool, error), third bool,
	command string, says func(p3 *play.Actor),
) ([]*play.Actor, []*d06getset.Lock) {
	p.Helper()
	actors, locks := d06cast(p, server, "P1", "P2", "P3")
	p1, p2, p3 := actors[0], actors[1], actors[2]
	got, err := try(locks[0], p.Context())
	p1.Got(true, got, err)
	p1.Kill()
	p.Fate("P1 dies. 20 s pass, by everybody's clock.", "P1 崩溃。所有机器的时钟都过了 20 秒。")
	locks[1].Now, locks[2].Now = at(1_020_001), at(1_020_002)
	pause := p3.Until(command, func() { got, err = try(locks[2], p.Context()) })
	says(p3)
	gotP2, errP2 := try(locks[1], p.Context())
	p2.Got(true, gotP2, errP2)
	pause.Resume()
	p3.Got(third, got, err)
	return actors, locks
}

func d06del(p *play.Play, server *play.Redis) {
	p.Act("an old lock is removed with DEL", "用 DEL 删掉过期的锁")
	d06over(p, server, (*d06getset.Lock).TryLockByDel, true, "DEL", func(p3 *play.Actor) {
		p3.Says("has found the lock over, and is about to delete it.", "发现锁已过期，正要删它。")
	})
	p.ShowClash("P3 has deleted the lock that P2 had just taken.", "P3 删掉的是 P2 刚拿到的锁。")
}

func d06overwritten(p *play.Play, server *play.Redis) {
	p.Act("GETSET instead; the loser overwrites the winner's value", "换成 GETSET；没抢到的覆盖了抢到者的值")
	actors, locks := d06over(p, server, (*d06getset.Lock).TryLock, false, "GETSET", func(p3 *play.Actor) {
		p3.Says("has found the lock over, and is about to replace it.", "发现锁已过期，正要替换。")
	})
	p.ShowAlone("Only one of the two got it: who gets back by GETSET what it had seen before.",
		"两个人里只有一个拿到：GETSET 拿回的值和之前看到的一样的那个。")
	freed, err := locks[1].Unlock(p.Context())
	actors[1].Believes(false, "cannot release: the value is no longer its own.", "无法释放：值已经不是它写的了。")
	p.Show(err == nil && !freed && server.Value(key)() == "1030002",
		"P3, the loser, has overwritten the instant. The lock stays until that has passed, although nobody holds it.",
		"没抢到锁的 P3 覆盖了时刻。没有人持有锁，锁却要一直占到那个时刻。")
}

// d06orphan is a holder that is late, and releases between the GET and the GETSET of who finds its lock over.
func d06orphan(p *play.Play, server *play.Redis) {
	p.Act("the holder releases between GET and GETSET", "持有者在 GET 和 GETSET 之间释放")
	actors, locks := d06cast(p, server, "A", "B", "C")
	a, b, c := actors[0], actors[1], actors[2]
	got, err := locks[0].TryLock(p.Context())
	a.Got(true, got, err)
	p.Fate("20 s pass, by everybody's clock; A has not finished.", "所有机器的时钟都过了 20 秒；A 还没干完。")
	locks[1].Now, locks[2].Now = at(1_020_001), at(1_020_500)
	var gotB bool
	var errB error
	pause := b.Until("GETSET", func() { gotB, errB = locks[1].TryLock(p.Context()) })
	b.Says("has found the lock over, and is about to replace it.", "发现锁已过期，正要替换。")
	freed, err := locks[0].Unlock(p.Context())
	a.Freed(err)
	pause.Resume()
	b.Got(false, gotB, errB)
	p.Show(freed && server.Value(key)() == "1030001",
		"B has got nothing back, which is not what it had seen, so it was refused. But its instant is in the key.",
		"B 什么也没拿回来，和它看到的不一样，所以没拿到锁。可是它的时刻留在了键里。")
	got, err = locks[2].TryLock(p.Context())
	c.Got(false, got, err)
	p.ShowAlone("Nobody has the lock, and nobody gets it until B's 10 s are over: an orphan.",
		"没有人持有锁，在 B 的 10 秒过去之前也没有人拿得到：成了没有主人的锁。")
}

func d06clocks(p *play.Play, server *play.Redis) {
	p.Act("one clock is a minute ahead", "有一台机器的时钟快一分钟")
	actors, locks := d06cast(p, server, "A", "B")
	got, err := locks[0].TryLock(p.Context())
	actors[0].Got(true, got, err)
	locks[1].Now = at(1_060_000)
	actors[1].Says("has a clock that is 60 s ahead: to B the lock ended 50 s ago.", "时钟快了 60 秒：在 B 看来，锁 50 秒前就过期了。")
	got, err = locks[1].TryLock(p.Context())
	actors[1].Got(true, got, err)
	p.ShowClash("No lease has ended, and two are inside.", "没有任何租约到期，却有两个人在里面。")
}

func d06same(p *play.Play, server *play.Redis) {
	p.Act("two clients come in the same millisecond", "两个客户端在同一毫秒到来")
	actors, locks := d06cast(p, server, "A", "B", "C")
	a, b, c := actors[0], actors[1], actors[2]
	got, err := locks[0].TryLock(p.Context())
	a.Got(true, got, err)
	got, err = locks[1].TryLock(p.Context())
	b.Got(false, got, err)
	freed, err := locks[1].Unlock(p.Context())
	b.Says("releases in its finally block, as code does that always cleans up.", "在 finally 里释放：这是清理代码的惯常写法。")
	p.Show(err == nil && freed, "B computed the same instant as A, so the value says that the lock is B's.",
		"B 算出的时刻和 A 一样，所以按值判断，锁就是 B 的。")
	got, err = locks[2].TryLock(p.Context())
	c.Got(true, got, err)
	p.ShowClash("B, who never had the lock, has let C in beside A.", "从没拿到锁的 B，把 C 放进来和 A 在一起。")
}

func d06sound(p *play.Play, server *play.Redis) {
	server.Ask("DEL", key)
	p.WatchLock("Redis", server.URL(), key)
	p1 := p.Process("P1", server.URL(), key, lease)
	p2, p3 := p.Process("P2", server.URL(), key, lease), p.Process("P3", server.URL(), key, lease)
	p1.Lock()
	p2.BeginLock()
	p3.BeginLock()
	p1.Kill()
	p.Show(p2.Granted(),
		"The server's clock alone decides when the lease has ended, and the lock goes to the first in the queue.",
		"租约何时到期只由服务器的时钟决定，锁交给队列里的第一个。")
	p.Show(p2.Unlock(), "P2's release is its own: every request has an id of its own.", "P2 释放的是自己的锁：每个请求都有自己的编号。")
	p.Show(p3.Granted(), "Then P3 gets in.", "然后 P3 才进来。")
	p3.Unlock()
	p.ShowAlone("Never were two inside.", "任何时刻都没有两个人同时在里面。")
}
