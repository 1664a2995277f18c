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
			"articles print a script as the repair; both scripts compile and fail at run time.",
			"现在值里写着所有者，客户端先看再删。但看是一条命令，删是另一条：租约如果在中间到期，删掉的就是下一个人的锁。"+
				"有两篇文章给出 Lua 补救脚本，两个都能通过编译，但一运行就出错。"),
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

// d04scripts sends the scripts that two articles print.
func d04scripts(p *play.Play, server *play.Redis) {
	p.Act("the repair that two articles print", "两篇文章给出的补救脚本")
	p.Watch("Redis", server.Value(key))
	a := p.Actor("A")
	lock := &d04getdel.Lock{Conn: a.Dial(server.Addr(), ""), Key: key}
	got, err := lock.TryLock(p.Context(), "A", 10)
	a.Got(true, got, err)
	p.Say("The first article's script, with both calls as printed:", "第一篇文章的脚本，两处调用原样照抄：")
	d04compiles(p, a, lock, d04getdel.Misplaced)
	d04fails(p, a, lock, d04getdel.Misplaced, "command arguments must be strings or integers")
	p.Say("The parenthesis of GET closes too late: the key that GET gets is the result of a comparison.",
		"GET 的右括号放错了位置：GET 拿到的键是一次比较的结果。")
	reply, err := d04send(p, a, lock, d04getdel.Quoted, "")
	p.Show(err == nil && reply == int64(0),
		"The second call by itself answers 0: in quotation marks KEYS1 is the name of another key.",
		"单独执行第二处调用，应答是 0：加了引号的 KEYS1 是另一个键的名字。")
	p.Say("The third article writes KEY[1]:", "第三篇文章写的是 KEY[1]：")
	d04compiles(p, a, lock, d04getdel.Misspelt)
	d04fails(p, a, lock, d04getdel.Misspelt, "nonexistent global variable 'KEY'")
	p.Show(server.Look("GET", key) == "A", "Nothing was released: each release waits for the lease to run out.",
		"什么都没释放：每次释放其实都是在等租约到期。")
	server.Ask("DEL", key)
}

// d04compiles shows that the server accepts a script.
func d04compiles(p *play.Play, a *play.Actor, lock *d04getdel.Lock, script string) {
	p.Helper()
	var sha string
	err := a.Quietly(func() (err error) {
		sha, err = lock.Compile(p.Context(), script)
		return err
	})
	a.Says("SCRIPT LOAD '%s'  →  %s", "SCRIPT LOAD '%s'  →  %s", script, sha)
	p.Show(err == nil && len(sha) == 40, "It compiles.", "它能通过编译。")
}

// d04fails shows that the server refuses to run it, in the server's own words.
func d04fails(p *play.Play, a *play.Actor, lock *d04getdel.Lock, script, says string) {
	p.Helper()
	_, err := d04send(p, a, lock, script, says)
	p.Show(err != nil && strings.Contains(err.Error(), says), "It fails at run time.", "它在运行时失败。")
}

// d04send tells a script in full, with the answer. What stands around the core of an error differs between versions.
func d04send(p *play.Play, a *play.Actor, lock *d04getdel.Lock, script, core string) (any, error) {
	p.Helper()
	var reply any
	var err error
	_ = a.Quietly(func() error {
		reply, err = lock.UnlockBy(p.Context(), script, "A")
		return err
	})
	answer := play.Answer(reply, err)
	if err != nil {
		answer = story.Volatile(answer, "… "+core+" …")
	}
	a.Says("EVAL '%s' 1 stock A  →  %s", "EVAL '%s' 1 stock A  →  %s", script, answer)
	return reply, err
}
