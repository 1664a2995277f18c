package experiment

import (
	"github.com/interlock-go/interlock/lab/exhibit/d01setnx"
	"github.com/interlock-go/interlock/lab/internal/play"
	"github.com/interlock-go/interlock/lab/internal/story"
)

func d01() *Experiment {
	return &Experiment{
		ID: "D1", Title: story.T("SETNX and DEL", "SETNX 加 DEL"), Needs: []string{"redis"},
		About: story.T("The first lock of every article: SETNX succeeds for one client only, and DEL frees the key. "+
			"It has no expiry, so a holder that dies keeps it for ever.",
			"每篇文章的第一把锁：SETNX 只会让一个客户端成功，DEL 释放。键没有过期时间，持有者一旦崩溃，锁就永远留在那里。"),
		run: func(p *play.Play) {
			server := p.Redis()
			p.Act("the holder crashes", "持有者崩溃")
			p.Watch("Redis", server.Value(key))
			a, b := p.Actor("A"), p.Actor("B")
			lockA := &d01setnx.Lock{Conn: a.Dial(server.Addr(), ""), Key: key}
			lockB := &d01setnx.Lock{Conn: b.Dial(server.Addr(), ""), Key: key}

			got, err := lockA.TryLock(p.Context(), "A")
			a.Got(true, got, err)
			work := a.Until("DEL", func() { _ = lockA.Unlock(p.Context()) })
			work.Kill()
			p.Fate("A is killed before it sends DEL.", "A 在发送 DEL 之前被杀死。")
			got, err = lockB.TryLock(p.Context(), "B")
			b.Got(false, got, err)
			ttl := server.Look("TTL", key)
			p.Show(ttl == int64(-1), "TTL -1: the key has no expiry. The lock is held for ever, by nobody.",
				"TTL 为 -1：键没有过期时间。锁永远被占着，占着它的人已经不在了。")
			again := &d01setnx.Lock{Conn: p.Actor("A'").Dial(server.Addr(), ""), Key: key}
			got, err = again.TryLock(p.Context(), "A'")
			p.Show(err == nil && !got, "Even A, started again (A'), cannot get in.", "就连重启后的 A（A'）也进不去。")

			p.Sound("the holder crashes", "持有者崩溃")
			crashOfHolder(p, server, "")
		},
	}
}

// crashOfHolder is the sound lock whose holder dies.
func crashOfHolder(p *play.Play, server *play.Redis, prefix string) {
	p.Helper()
	url := server.URL() + prefix
	p.WatchLock("Redis", url, key)
	a, b := p.Process("A", url, key, lease), p.Process("B", url, key, lease)
	a.Lock()
	b.BeginLock()
	a.Kill()
	got := b.Granted()
	p.ShowAlone("Nobody else was inside while A lived.", "A 活着的时候没有别人进来。")
	p.Show(got, "A's lease ran out, and B, who was waiting, was given the lock.", "A 的租约到期，排队的 B 随即拿到锁。")
	b.Unlock()
}
