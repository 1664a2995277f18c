package experiment

import (
	"errors"

	"github.com/interlock-go/interlock/lab/exhibit"
	"github.com/interlock-go/interlock/lab/exhibit/d13tx"
	"github.com/interlock-go/interlock/lab/internal/play"
	"github.com/interlock-go/interlock/lab/internal/story"
)

func d13() *Experiment {
	return &Experiment{
		ID: "D13", Title: story.T("a lock around a database transaction", "包着数据库事务的锁"),
		Needs: []string{"redis", "mariadb"},
		About: story.T("Each user is to be there once: check, then insert, under a lock. A lock that is released "+
			"before the COMMIT lets the next one check too early. One article releases it after the commit "+
			"instead, which a rollback never reaches, and corrected that in 2024. It has to be released when the "+
			"transaction is complete, whatever the outcome; package locktx does that, and knows a third outcome: "+
			"unknown.",
			"每个用户只能有一行：在锁里先查，再插入。锁在 COMMIT 之前释放，下一个人就查得太早。有一篇文章改成在提交之后释放，但回滚时永远"+
				"走不到那一步，2024 年作了更正。锁应该在事务完成时释放，不管结果如何；locktx 包就是这样做的，而且它还知道第三种结果：未知。"),
		run: func(p *play.Play) {
			locks, db := p.Redis(), p.MariaDB()
			d13before(p, locks, db)
			d13after(p, locks, db)
			d13rolledBack(p, locks, db)
			p.Sound("locktx: the first one commits", "locktx：第一个人提交")
			d13commit(p, locks, db)
			p.Sound("locktx: the first one rolls back", "locktx：第一个人回滚")
			d13rollback(p, locks, db)
			p.Sound("locktx: the answer to the COMMIT is lost", "locktx：COMMIT 的应答丢了")
			d13unknown(p, locks, db)
		},
	}
}

// clerk is an actor with its transaction and its lock.
type clerk struct {
	*play.Actor
	p    *play.Play
	tx   *d13tx.Tx
	lock *d13tx.Lock
	db   exhibit.SQL
}

// d13cast are two of them, with an empty table.
func d13cast(p *play.Play, locks *play.Redis, db *play.MariaDB) (a, b *clerk) {
	p.Helper()
	p.Watch("Redis", locks.Value(key))
	db.Users()
	p.Say("The table users has no unique index. Transactions see what others have committed (READ COMMITTED).",
		"表 users 没有唯一索引。事务能看到别人已提交的数据（READ COMMITTED）。")
	var both []*clerk
	for _, name := range []string{"A", "B"} {
		actor := p.Actor(name)
		both = append(both, &clerk{
			Actor: actor, p: p, db: db.Session(actor),
			lock: &d13tx.Lock{Conn: actor.Dial(locks.Addr(), ""), Key: key, Owner: name},
		})
	}
	return both[0], both[1]
}

// begin begins a transaction.
func (c *clerk) begin() {
	c.p.Helper()
	c.tx = &d13tx.Tx{DB: c.db}
	if err := c.tx.Begin(c.p.Context()); err != nil {
		c.p.Fatal(err)
	}
}

func d13before(p *play.Play, locks *play.Redis, db *play.MariaDB) {
	p.Act("released before the commit", "在提交之前释放")
	a, b := d13cast(p, locks, db)
	register := func(c *clerk) error {
		c.begin()
		return errors.Join(d13tx.Register(p.Context(), c.tx, c.lock, "ann"), c.tx.Commit(p.Context()))
	}
	var err error
	pause := a.Until("COMMIT", func() { err = register(a) })
	a.Says("has released the lock, as its function has returned. The framework is about to commit.",
		"函数返回了，锁已释放。框架正要提交。")
	errB := register(b)
	pause.Resume()
	p.Show(err == nil && errB == nil && db.Registered() == 2,
		"Ann is there twice. The lock did its work, and no two had it at once; but B checked before A's row was there "+
			"for others to see.",
		"ann 有两行。锁本身没有出错，没有两个人同时持有它；但 B 去查的时候，A 的那一行别人还看不见。")
}

func d13after(p *play.Play, locks *play.Redis, db *play.MariaDB) {
	p.Act("released after the commit, which comes", "在提交之后释放，而且提交了")
	a, b := d13cast(p, locks, db)
	a.begin()
	pause := a.Until("COMMIT", func() {
		err := d13tx.RegisterAfterCommit(p.Context(), a.tx, a.lock, "ann")
		if err = errors.Join(err, a.tx.Commit(p.Context())); err != nil {
			p.Error(err)
		}
	})
	a.Believes(true, "has inserted its row, and its release is registered. The framework is about to commit.",
		"插入了自己的行，也登记了释放。框架正要提交。")
	b.begin()
	err := d13tx.RegisterAfterCommit(p.Context(), b.tx, b.lock, "ann")
	p.Show(errors.Is(err, d13tx.ErrHeld), "Before A's commit nobody gets in.", "A 提交之前谁也进不来。")
	pause.Resume()
	a.Believes(false, "has committed, and then released the lock.", "提交了，然后释放了锁。")
	err = d13tx.RegisterAfterCommit(p.Context(), b.tx, b.lock, "ann")
	if err = errors.Join(err, b.tx.Commit(p.Context())); err != nil {
		p.Fatal(err)
	}
	p.Show(db.Registered() == 1, "B sees A's row, and inserts nothing: this is right.", "B 看到了 A 的那一行，没有插入：这是对的。")
}

func d13rolledBack(p *play.Play, locks *play.Redis, db *play.MariaDB) {
	p.Act("released after the commit, which does not come", "在提交之后释放，却没有提交")
	a, b := d13cast(p, locks, db)
	a.begin()
	if err := d13tx.RegisterAfterCommit(p.Context(), a.tx, a.lock, "ann"); err != nil {
		p.Fatal(err)
	}
	a.Believes(true, "finds that the name is not allowed: the transaction is rolled back.", "发现这个名字不允许使用：事务回滚。")
	if err := a.tx.Rollback(p.Context()); err != nil {
		p.Fatal(err)
	}
	a.Believes(false, "goes on to other work. Nobody calls Unlock: that was registered for a commit.",
		"去做别的事了。没有人调用 Unlock：它登记的是提交之后。")
	b.begin()
	err := d13tx.RegisterAfterCommit(p.Context(), b.tx, b.lock, "ben")
	p.Show(errors.Is(err, d13tx.ErrHeld), "Nobody is inside, and B does not get in.", "里面没有人，B 却进不来。")
	p.Fate("10 s pass: A's watchdog renews the lock, as it does until Unlock (the lab shortens the wait).",
		"10 秒过去，A 的看门狗续期，Unlock 之前它一直这样做（实验缩短了等待）。")
	renewed, errRenew := a.lock.Renew(p.Context())
	err = d13tx.RegisterAfterCommit(p.Context(), b.tx, b.lock, "ben")
	p.Show(errRenew == nil && renewed && errors.Is(err, d13tx.ErrHeld),
		"So it stays for as long as A's process lives. Without a watchdog it would be the rest of the 30 s.",
		"只要 A 的进程还活着，就一直如此。没有看门狗的话，是 30 秒里剩下的时间。")
	a.begin()
	err = d13tx.RegisterAfterCommit(p.Context(), a.tx, a.lock, "ann")
	p.Show(errors.Is(err, d13tx.ErrHeld) && locks.Value(key)() == "A" && db.Registered() == 0,
		"A waits for itself as well, in its next transaction.", "连 A 自己的下一个事务也在等自己。")
}

// d13processes are two processes; A reaches the database as dsn says.
func d13processes(p *play.Play, locks *play.Redis, db *play.MariaDB, dsn string) (a, b *play.Process) {
	p.Helper()
	p.WatchLock("Redis", locks.URL(), key)
	db.Users()
	a, b = p.Process("A", locks.URL(), key, lease), p.Process("B", locks.URL(), key, lease)
	a.Database(dsn)
	b.Database(db.DSN())
	return a, b
}

// registers is a process that checks and inserts, in a transaction that it leaves open.
func registers(p *play.Play, a *play.Process) {
	p.Helper()
	a.Lock()
	a.Begin()
	a.Hold()
	if a.Count() != 0 {
		p.Fatal("the table is not empty")
	}
	a.Insert()
}

// finds is the next owner: it inserts if it sees nobody. It returns how many it has seen.
func finds(p *play.Play, b *play.Process) int {
	p.Helper()
	b.Granted()
	b.Begin()
	b.Hold()
	n := b.Count()
	if n == 0 {
		b.Insert()
	}
	if outcome, _ := b.Commit(); outcome != "committed" {
		p.Fatalf("B's transaction: %s", outcome)
	}
	return n
}

func d13commit(p *play.Play, locks *play.Redis, db *play.MariaDB) {
	a, b := d13processes(p, locks, db, db.DSN())
	registers(p, a)
	b.BeginLock()
	outcome, held := a.Commit()
	p.Show(outcome == "committed" && held, "The database has answered, and A still had the lock then.",
		"数据库已经答复，而那一刻 A 仍持有锁。")
	p.Show(finds(p, b) == 1 && db.Registered() == 1, "B sees A's row, and inserts nothing.", "B 看到了 A 的那一行，没有插入。")
	p.ShowAlone("Ann is there once.", "ann 只有一行。")
}

func d13rollback(p *play.Play, locks *play.Redis, db *play.MariaDB) {
	a, b := d13processes(p, locks, db, db.DSN())
	registers(p, a)
	b.BeginLock()
	outcome, held := a.Rollback()
	p.Show(outcome == "rolled back" && held,
		"The callback may look for one outcome only, as to empty a cache after a commit. The lock goes with each.",
		"回调可以只关心一种结果，比如提交后才清缓存；而锁在任何结果之后都会释放。")
	p.Show(finds(p, b) == 0 && db.Registered() == 1, "B gets in at once, sees nobody, and inserts.",
		"B 立刻进来，没看到人，于是插入。")
	p.ShowAlone("Nothing was left behind.", "没有留下任何锁。")
}

// d13unknown is a COMMIT that is done, and whose answer never comes.
func d13unknown(p *play.Play, locks *play.Redis, db *play.MariaDB) {
	cable, dsn := db.Cable()
	a, b := d13processes(p, locks, db, dsn)
	registers(p, a)
	cable.DropReplies()
	p.Fate("The network loses what the database says to A; what A sends arrives.", "网络丢掉数据库对 A 说的话；A 发出的还能到达。")
	a.BeginCommit()
	db.AwaitRegistered(1)
	cable.Reset()
	p.Fate("Then the connection breaks.", "随后连接断开。")
	outcome, _ := a.Completed("tx.Commit")
	p.Show(outcome == "outcome unknown" && !b.TryLock(),
		"A cannot know whether its row is there, so the lock is not released: it is renewed no more.",
		"A 无从知道那一行在不在，所以不释放锁，只是不再续期。")
	b.BeginLock()
	p.Show(finds(p, b) == 1 && db.Registered() == 1,
		"B gets it at the end of A's lease. Whatever was under way had that time to end in; B sees the row, and "+
			"inserts nothing.",
		"A 的租约到期后 B 拿到锁。还在路上的操作有这段时间收尾；B 看到了那一行，没有插入。")
	p.ShowAlone("Ann is there once, and no two were inside.", "ann 只有一行，任何时刻都没有两个人同时在里面。")
}
