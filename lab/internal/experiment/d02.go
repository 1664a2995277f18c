package experiment

import (
	"time"

	"github.com/interlock-go/interlock/lab/exhibit/d02expire"
	"github.com/interlock-go/interlock/lab/internal/play"
	"github.com/interlock-go/interlock/lab/internal/story"
)

func d02() *Experiment {
	return &Experiment{
		ID: "D2", Title: story.T("SETNX, then EXPIRE", "先 SETNX，再 EXPIRE"), Needs: []string{"redis"},
		About: story.T("An expiry is to save what D1 lost. But it is a second command, and a client can die between "+
			"the two. The article on a marketplace mends that in the waiters: who sees a lock without expiry gives "+
			"it one.",
			"加上过期时间，想补救 D1 的问题。但这是第二条命令，客户端可能在两条命令之间崩溃。讲“市场”的那篇文章让等待者来补救："+
				"谁看到没有过期时间的锁，就给它设一个。"),
		run: func(p *play.Play) {
			server := p.Redis()
			d02gap(p, server)
			d02repair(p, server)
			p.Sound("the holder crashes, another waits", "持有者崩溃，另一个在等")
			d02sound(p, server)
		},
	}
}

func d02gap(p *play.Play, server *play.Redis) {
	p.Act("a crash between the two", "在两条命令之间崩溃")
	p.Watch("Redis", server.Value(key))
	a, b := p.Actor("A"), p.Actor("B")
	lockA := &d02expire.Lock{Conn: a.Dial(server.Addr(), ""), Key: key, Now: time.Now}
	lockB := &d02expire.Lock{Conn: b.Dial(server.Addr(), ""), Key: key, Now: time.Now}
	a.Until("EXPIRE", func() { _, _ = lockA.TryLock(p.Context(), "A", 10) }).Kill()
	p.Fate("A is killed between SETNX and EXPIRE.", "A 在 SETNX 和 EXPIRE 之间被杀死。")
	got, err := lockB.TryLock(p.Context(), "B", 10)
	b.Got(false, got, err)
	p.Show(server.Look("TTL", key) == int64(-1), "No expiry: locked for ever, as in D1.", "没有过期时间：和 D1 一样，永远锁住。")
}

func d02repair(p *play.Play, server *play.Redis) {
	p.Act("D2b: the waiters mend it", "D2b：让等待者补救")
	p.Watch("Redis", server.Value(key))
	b := p.Actor("B")
	link := b.Dial(server.Addr(), "")
	began := time.Now() // B's clock stands still: however busy the machine, its ten seconds are not over
	lock := &d02expire.Lock{Conn: link, Key: key, Now: func() time.Time { return began }}
	p.Say("The key that A left behind is still there.", "A 留下的键还在。")
	loop := b.UntilNth("SETNX", 2, func() { _, _ = lock.AcquireRepaired(p.Context(), "B") })
	b.Says("has found a lock without expiry, and given it one.", "发现锁没有过期时间，给它设了一个。")
	ttl, _ := server.Look("TTL", key).(int64)
	p.Show(ttl > 19000 && ttl <= 20000,
		"20000 was meant in milliseconds, and EXPIRE takes seconds: the dead A keeps the lock for 5.5 hours.",
		"20000 本意是毫秒，而 EXPIRE 的单位是秒：崩溃的 A 还要占着锁 5.5 小时。")
	loop.Kill()
	p.Fate("The lab takes this B away, and lets another one run the loop without writing down what it sends.",
		"实验换一个 B 来跑这个循环，不再逐条记录它发送的命令。")
	sent, took := d02spin(p, lock, link)
	p.Show(sent == spins, "The loop has no pause: one waiter sends %d commands in %s.",
		"循环里没有停顿：一个等待者在 %[2]s 内发了 %[1]d 条命令。", sent, story.Volatile(play.Short(took), "a moment"))
	p.Show(true, "It gives up after 10 s (the lab moves B's clock): at this rate that is %s commands for nothing.",
		"10 秒后它才放弃（实验拨快了 B 的时钟）：按这个速度，就是 %s 条白白发送的命令。",
		story.Volatile(int64(spins)*int64(10*time.Second)/max(1, int64(took)), "very many"))
}

// spins is how many commands of the loop the lab counts.
const spins = 2000

// d02spin lets the loop send so many commands, then moves its clock behind the ten seconds that it tries for. It
// returns how many commands were sent, and how long they took.
func d02spin(p *play.Play, lock *d02expire.Lock, link *play.Link) (int, time.Duration) {
	p.Helper()
	begin := time.Now()
	now := begin
	lock.Now = func() time.Time { return now }
	counted := link.Quietly(spins, func() { now = now.Add(10 * time.Second) })
	lock.Conn = counted
	got, err := lock.AcquireRepaired(p.Context(), "B")
	took := time.Since(begin)
	if got || err != nil {
		p.Fatalf("the loop ended with %v, %v after %d commands", got, err, counted.Sent())
	}
	return counted.Sent(), took
}

func d02sound(p *play.Play, server *play.Redis) {
	a, b := p.Process("A", server.URL(), key, lease), p.Process("B", server.URL(), key, lease)
	a.Warm() // the server knows the script then
	before := server.Scripts()
	a.Lock()
	taken := server.Scripts() - before
	p.Show(taken == 1,
		"Taking the lock, its lease and its owner were %d script on the server: there is no gap to die in.",
		"加锁、设租约、记所有者，在服务器里是 %d 个脚本：中间没有可能崩溃的空隙。", taken)
	b.BeginLock()
	before = server.Scripts()
	a.Renewed(3)
	sent := server.Scripts() - before
	p.Show(sent < 30,
		"While A held the lock for three renewals, renewing and waiting took %s scripts together: B stands in a queue "+
			"and is told.",
		"A 续期三次的时间里，续期和等待一共只用了 %s 个脚本：B 在队列里等通知，不轮询。", story.Volatile(sent, "few"))
	a.Kill()
	p.Show(b.Granted(), "A is dead, its lease runs out, B is given the lock.", "A 死了，租约到期，B 拿到锁。")
	p.ShowAlone("Never were two inside.", "任何时刻都没有两个人同时在里面。")
	b.Unlock()
}
