package experiment

import (
	"errors"

	"github.com/interlock-go/interlock/lab/exhibit/d05owned"
	"github.com/interlock-go/interlock/lab/internal/play"
	"github.com/interlock-go/interlock/lab/internal/story"
)

func d05() *Experiment {
	return &Experiment{
		ID: "D5", Title: story.T("compare and delete in one step", "比较和删除合成一步"), Needs: []string{"redis"},
		About: story.T("The owner is compared and the key deleted in one step of the server: (a) by a script, (b) by "+
			"WATCH, MULTI, EXEC. The release is sound now. But nothing keeps the lease alive while its holder works, "+
			"and nothing stops the holder that overruns it.",
			"比较所有者和删除键在服务器里合成一步：(a) Lua 脚本，(b) WATCH、MULTI、EXEC。释放现在是可靠的。但持有者干活时没有人续期，"+
				"超过租约的持有者也没有人拦得住。"),
		run: func(p *play.Play) {
			server := p.Redis()
			d05script(p, server)
			d05watch(p, server)
			p.Sound("work that outlasts the lease", "干活的时间超过租约")
			d03renewed(p, server)
			p.Fenced("the holder stands still just before its write", "持有者在写入之前停住")
			d05late(p, server)
		},
	}
}

func d05script(p *play.Play, server *play.Redis) {
	p.Act("D5a: a script; the holder overruns its lease", "D5a：脚本；持有者超过租约")
	p.Watch("Redis", server.Value(key))
	server.Ask("SET", "number", "10")
	a, b := p.Actor("A"), p.Actor("B")
	linkA, linkB := a.Dial(server.Addr(), ""), b.Dial(server.Addr(), "")
	lockA, lockB := &d05owned.Lock{Conn: linkA, Key: key}, &d05owned.Lock{Conn: linkB, Key: key}
	got, err := lockA.TryLock(p.Context(), "A", 10)
	a.Got(true, got, err)
	linkA.Must("GET", "number")
	server.TimePasses(key, "A's lease runs out (the lab shortens the wait); A works on.", "A 的租约到期（实验缩短了等待），A 还在干活。")
	got, err = lockB.TryLock(p.Context(), "B", 10)
	b.Got(true, got, err)
	linkB.Must("GET", "number")
	linkB.Must("SET", "number", "9")
	linkA.Must("SET", "number", "9")
	p.ShowClash("Two were inside: two pieces are sold, and the stock went from 10 to 9.", "两个人同时在里面：卖了两件，库存从 10 只变成 9。")
	err = lockA.UnlockByScript(p.Context(), "A")
	a.Believes(false, "learns only now that the lock is not its own.", "这时才知道锁已经不是自己的了。")
	p.Show(errors.Is(err, d05owned.ErrNotOwner) && server.Value(key)() == "B",
		"The release did no harm: the lock is B's.", "释放没有造成伤害：锁还是 B 的。")
	err = lockB.UnlockByScript(p.Context(), "B")
	b.Freed(err)
}

func d05watch(p *play.Play, server *play.Redis) {
	p.Act("D5b: WATCH, MULTI, EXEC; the lease ends in between", "D5b：WATCH、MULTI、EXEC；租约在中间到期")
	p.Watch("Redis", server.Value(key))
	a, b := p.Actor("A"), p.Actor("B")
	lockA := &d05owned.Lock{Conn: a.Dial(server.Addr(), ""), Key: key}
	lockB := &d05owned.Lock{Conn: b.Dial(server.Addr(), ""), Key: key}
	got, err := lockA.TryLock(p.Context(), "A", 10)
	a.Got(true, got, err)
	pause := a.Until("MULTI", func() { err = lockA.UnlockByWatch(p.Context(), "A") })
	a.Says("has read its own name, and its program stands still: the gap of D4.", "读到自己的名字后程序停住：正是 D4 的那道缝。")
	server.TimePasses(key, "A's lease runs out (the lab shortens the wait).", "A 的租约到期（实验缩短了等待）。")
	got, errB := lockB.TryLock(p.Context(), "B", 10)
	b.Got(true, got, errB)
	pause.Resume()
	a.Believes(false, "is told that nothing was deleted.", "被告知什么都没有删。")
	p.Show(errors.Is(err, d05owned.ErrNotOwner) && server.Value(key)() == "B",
		"EXEC has done nothing, because the key had changed: B keeps its lock.", "键变了，所以 EXEC 什么都没做：B 的锁还在。")
	b.Freed(lockB.UnlockByWatch(p.Context(), "B"))
}

// d05late is a lock that is renewed and that no holder overruns without being told; a write can be late all the same.
func d05late(p *play.Play, server *play.Redis) {
	p.Helper()
	p.WatchLock("Redis", server.URL(), key)
	a, b := p.Process("A", server.URL(), key, lease), p.Process("B", server.URL(), key, lease)
	overtaken(p, p.Resource(server, 10, a, b), a, b)
}

// overtaken is A, which stands still just before its write, and B, which gets the lock meanwhile. Both sell: A one
// piece, B two.
func overtaken(p *play.Play, goods *play.Resource, a, b *play.Process) {
	p.Helper()
	a.Lock()
	goods.Read(a)
	goods.Looks(a)
	a.Stop()
	b.BeginLock()
	b.Granted()
	goods.Read(b)
	p.Show(goods.Write(b, 8), "B has sold two pieces. Its token is larger than A's.", "B 卖了两件。它的令牌比 A 的大。")
	p.Show(!goods.Resume(a, 9),
		"A has looked at its lease before it stood still, and writes before it is told anything.",
		"A 停住之前看过租约，还没人告诉它任何事，它就写了。")
	corrupted(p, goods)
	a.Told()
	b.Unlock()
}

// corrupted compares what the fence has saved with what it could not.
func corrupted(p *play.Play, goods *play.Resource) {
	p.Helper()
	plain, fenced := goods.Values()
	p.Show(plain == 9,
		"Without a fence the late write is carried out: B's sale is lost, and number says %d instead of 8.",
		"没有围栏，迟到的写入就会生效：B 的销售丢了，number 是 %d，而不是 8。", plain)
	p.Show(fenced == 8, "Behind the fence it is refused: fenced says %d. No lock can do this; the resource has to.",
		"有围栏，它被拒绝：fenced 是 %d。这件事锁做不到，只能由资源来做。", fenced)
}
