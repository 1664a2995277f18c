package experiment

import (
	"github.com/interlock-go/interlock/lab/exhibit/d07counter"
	"github.com/interlock-go/interlock/lab/internal/play"
	"github.com/interlock-go/interlock/lab/internal/story"
)

func d07() *Experiment {
	return &Experiment{
		ID: "D7", Title: story.T("re-entry by a counter in the client", "用客户端里的计数器实现可重入"), Needs: []string{"redis"},
		About: story.T("Each thread counts its holds in a variable of its own. The server knows nothing of that: "+
			"after the lease has ended the counter still says held. The source also counts an acquisition that "+
			"failed, and its re-entry passes 5000, milliseconds meant, to a command that takes seconds.",
			"每个线程用自己的变量记重入次数，服务器一无所知：租约到期后，计数器还说持有。原文的代码连失败的加锁也计数；"+
				"重入时把 5000（本意是毫秒）传给了单位是秒的命令。"),
		run: func(p *play.Play) {
			server := p.Redis()
			d07overrun(p, server)
			d07failed(p, server)
			p.Sound("re-entry, and re-entry after the lease has ended", "重入，以及租约到期之后的重入")
			d07sound(p, server)
		},
	}
}

func d07overrun(p *play.Play, server *play.Redis) {
	p.Act("re-entry after the lease has ended", "租约到期之后重入")
	p.Watch("Redis", server.Value(key))
	a, b, c := p.Actor("A"), p.Actor("B"), p.Actor("C")
	lockA := &d07counter.Lock{Conn: a.Dial(server.Addr(), ""), Key: key}
	lockB := &d07counter.Lock{Conn: b.Dial(server.Addr(), ""), Key: key}
	lockC := &d07counter.Lock{Conn: c.Dial(server.Addr(), ""), Key: key}
	got, err := lockA.TryLock(p.Context(), "A")
	a.Got(true, got, err)
	server.TimePasses(key, "A's lease runs out (the lab shortens the wait); A works on.", "A 的租约到期（实验缩短了等待），A 还在干活。")
	got, err = lockB.TryLock(p.Context(), "B")
	b.Got(true, got, err)
	got, err = lockA.TryLock(p.Context(), "A")
	a.Got(true, got, err)
	p.ShowClash("A's counter says 2. The server says that the lock is B's.", "A 的计数器是 2，服务器说锁是 B 的。")
	ttl, _ := server.Look("TTL", key).(int64)
	p.Show(ttl > 4900,
		"And A's re-entry has made B's lease of 5 s one of 83 minutes: 5000 seconds instead of milliseconds.",
		"A 的重入还把 B 的 5 秒租约变成了 83 分钟：5000 秒，而不是 5000 毫秒。")
	if done, err := lockA.Unlock(p.Context()); err != nil || !done {
		p.Fatal(done, err)
	}
	a.Says("unlocks the inner hold: the counter says 1, the server is not asked.", "释放内层：计数器变成 1，没有问服务器。")
	done, err := lockA.Unlock(p.Context())
	a.Freed(err)
	got, err = lockC.TryLock(p.Context(), "C")
	c.Got(true, got, err)
	p.Show(done && got, "It was B's lock that A's unlock deleted, and it returned true. C is inside beside B.",
		"A 的 unlock 删掉的是 B 的锁，却返回 true。C 进来，和 B 在一起。")
	server.Ask("DEL", key)
}

func d07failed(p *play.Play, server *play.Redis) {
	p.Act("an acquisition that failed is counted", "失败的加锁也被计数")
	p.Watch("Redis", server.Value(key))
	a, b, c := p.Actor("A"), p.Actor("B"), p.Actor("C")
	lockA := &d07counter.Lock{Conn: a.Dial(server.Addr(), ""), Key: key}
	lockB := &d07counter.Lock{Conn: b.Dial(server.Addr(), ""), Key: key}
	lockC := &d07counter.Lock{Conn: c.Dial(server.Addr(), ""), Key: key}
	got, err := lockB.TryLock(p.Context(), "B")
	b.Got(true, got, err)
	got, err = lockA.TryLock(p.Context(), "A")
	a.Got(false, got, err)
	done, err := lockA.Unlock(p.Context())
	a.Freed(err)
	p.Show(done && server.Value(key)() == "",
		"The counter was 1 and is 0, so A, which had nothing, has deleted B's lock in its finally block. "+
			"Its unlock returned true.",
		"计数器从 1 变成 0，于是什么都没拿到的 A 在 finally 里删掉了 B 的锁，unlock 还返回 true。")
	done, err = lockA.Unlock(p.Context())
	p.Show(err == nil && !done,
		"A second unlock returns false and asks no server: the source refuses an unlock only when the counter is 0.",
		"再次 unlock 返回 false，也不问服务器：原文的代码只有在计数器为 0 时才拒绝释放。")
	got, err = lockC.TryLock(p.Context(), "C")
	c.Got(true, got, err)
	p.ShowClash("B and C are inside together.", "B 和 C 同时在里面。")
	again := p.Actor("D")
	lockD := &d07counter.Lock{Conn: again.Dial(server.Addr(), ""), Key: key}
	got, err = lockD.TryLock(p.Context(), "D")
	again.Got(false, got, err)
	got, err = lockD.TryLock(p.Context(), "D")
	again.Got(true, got, err)
	p.Show(lockD.Count() == 2, "And who only tries again, as D does, is told that it re-enters.",
		"而像 D 这样再试一次的，会被告知自己重入了。")
	server.Ask("DEL", key)
}

func d07sound(p *play.Play, server *play.Redis) {
	p.WatchLock("Redis", server.URL(), key)
	a, b := p.Process("A", server.URL(), key, lease), p.Process("B", server.URL(), key, lease)
	a.Lock()
	p.Show(a.Reenter(), "The owner travels in the lease's context; there is one hold more.",
		"所有者随租约的 context 传递；多了一层持有。")
	a.Leave()
	p.Show(!b.TryLock(), "A refused try changes nothing for A.", "被拒绝的尝试对 A 没有任何影响。")
	a.Stop()
	b.BeginLock()
	b.Granted()
	a.Continue()
	p.Show(!a.Reenter(),
		"Re-entry is refused: the client's own clock says that the lease is over. Before the loss it asks that clock "+
			"too, and no counter. A pause after that look remains; D5 shows it.",
		"重入被拒绝：客户端自己的时钟说租约已经到期。丢锁之前它看的也是这个时钟，而不是计数器。看完时钟之后的停顿仍然可能出问题，见 D5。")
	a.Unlock()
	p.Show(b.Unlock(), "B's lock was B's all along.", "B 的锁一直是 B 的。")
	p.ShowAlone("Nobody acted as a holder beside another.", "没有人在别人持有时还以持有者的身份行动。")
}
