package experiment

import (
	"strings"

	"github.com/interlock-go/interlock/lab/exhibit/d04getdel"
	"github.com/interlock-go/interlock/lab/internal/play"
	"github.com/interlock-go/interlock/lab/internal/story"
)

func d04() *Experiment {
	return &Experiment{
		ID: "D4", Title: story.T("the owner as the value; GET, compare, DEL", "值里写上所有者；GET、比较、DEL"),
		Needs: []string{"redis"},
		About: story.T("The value names the owner now, and the client looks before it deletes. But it looks with one "+
			"command and deletes with another: if the lease ends in between, it deletes the next owner's lock. Two "+
			"scripts that the articles print as the remedy do not run at all.",
			"现在值里写着所有者，客户端先看再删。但看是一条命令，删是另一条：租约如果在中间到期，删掉的就是下一个人的锁。"+
				"文章给出的两个 Lua 补救脚本根本跑不起来。"),
		run: func(p *play.Play) {
			server := p.Redis()
			d04gap(p, server)
			d04scripts(p, server)
			p.Sound("the holder stands still before it releases", "持有者在释放之前停住")
			overrun(p, server)
		},
	}
}

func d04gap(p *play.Play, server *play.Redis) {
	p.Act("the lease ends between GET and DEL", "租约在 GET 和 DEL 之间到期")
	p.Watch("Redis", server.Value(key))
	a, b, c := p.Actor("A"), p.Actor("B"), p.Actor("C")
	lockA := &d04getdel.Lock{Conn: a.Dial(server.Addr(), ""), Key: key}
	lockB := &d04getdel.Lock{Conn: b.Dial(server.Addr(), ""), Key: key}
	lockC := &d04getdel.Lock{Conn: c.Dial(server.Addr(), ""), Key: key}
	got, err := lockA.TryLock(p.Context(), "A", 10)
	a.Got(true, got, err)
	pause := a.Until("DEL", func() { err = lockA.Unlock(p.Context(), "A") })
	a.Says("has read its own name: the lock is its own. Before it sends DEL, its program stands still.",
		"读到自己的名字：锁是我的。就在发送 DEL 之前，程序停住了。")
	server.TimePasses(key, "A's lease runs out (the lab shortens the wait).", "A 的租约到期（实验缩短了等待）。")
	got, errB := lockB.TryLock(p.Context(), "B", 10)
	b.Got(true, got, errB)
	pause.Resume()
	a.Freed(err)
	got, err = lockC.TryLock(p.Context(), "C", 10)
	c.Got(true, got, err)
	p.ShowClash("A has deleted B's lock although it looked first.", "A 明明先看过，还是删掉了 B 的锁。")
	server.Ask("DEL", key)
}

func d04scripts(p *play.Play, server *play.Redis) {
	p.Act("the articles' first scripts", "文章最初的 Lua 脚本")
	p.Watch("Redis", server.Value(key))
	a := p.Actor("A")
	lock := &d04getdel.Lock{Conn: a.Dial(server.Addr(), ""), Key: key}
	got, err := lock.TryLock(p.Context(), "A", 10)
	a.Got(true, got, err)
	for _, s := range []struct{ script, says, name string }{
		{d04getdel.Misplaced, "compiling", "Redis: it does not compile"},
		{d04getdel.Misspelt, "'KEY'", "Redis: there is no KEY"},
	} {
		err := a.Quietly(func() error { return lock.UnlockBy(p.Context(), s.script, "A") })
		a.Says("EVAL %s", "EVAL %s", s.script)
		p.Show(err != nil && strings.Contains(err.Error(), s.says), "The server's answer: %s", "服务器的回答：%s",
			story.Volatile(err, s.name))
	}
	p.Show(server.Look("GET", key) == "A", "Nothing was released: each release waits for the lease to run out.",
		"什么都没释放：每次释放其实都是在等租约到期。")
	server.Ask("DEL", key)
}
