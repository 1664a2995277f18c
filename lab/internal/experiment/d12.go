package experiment

import (
	"strings"

	"github.com/interlock-go/interlock/lab/exhibit/d12stock"
	"github.com/interlock-go/interlock/lab/internal/play"
	"github.com/interlock-go/interlock/lab/internal/story"
)

func d12() *Experiment {
	return &Experiment{
		ID: "D12", Title: story.T("a shop's stock in SQL", "SQL 里的库存"), Needs: []string{"mariadb"},
		About: story.T("What the lock is for. Read, check, write without a lock sells one piece twice; so does a "+
			"lock of the language as soon as there are two processes. The condition number >= 0 lets the stock go "+
			"below zero: in a sale of two clients that have both checked, and in the stocktaking. Stocktaking that "+
			"sets a value forgets what was sold "+
			"meanwhile.",
			"锁是用来保护什么的。不加锁地读、查、写，会把一件货卖两次；语言自带的锁，一旦有两个进程也一样。条件 number >= 0 会让库存变成负数："+
				"两个客户端都检查过的销售是这样，盘点也是。盘点时直接设成某个值，会忘掉这期间卖出的货。"),
		run: func(p *play.Play) {
			server := p.MariaDB()
			d12check(p, server)
			d12mutex(p, server)
			d12condition(p, server)
			d12correct(p, server)
			d12setTo(p, server)
			p.Sound("read, check, write in two processes under one lock", "两个进程在同一把锁下读、查、写")
			p.Answers(1, 2)
			d12locked(p, server)
			p.Sound("without a lock: a condition that holds, and a difference", "不用锁：正确的条件，加上差值")
			p.Answers(3, 4)
			d12atomic(p, server)
		},
	}
}

func d12check(p *play.Play, server *play.MariaDB) {
	p.Act("read, check, write, without a lock", "不加锁地读、查、写")
	server.Stock(1)
	a, b := p.Actor("A"), p.Actor("B")
	var soldA, soldB bool
	var err error
	pause := a.Until("UPDATE", func() {
		soldA, err = (&d12stock.Stock{DB: server.Client(a)}).SellChecked(p.Context(), 1)
	})
	a.Says("has seen one piece, and is about to write 0.", "看到还有一件，正要写 0。")
	soldB, errB := (&d12stock.Stock{DB: server.Client(b)}).SellChecked(p.Context(), 1)
	pause.Resume()
	p.Show(err == nil && errB == nil && soldA && soldB && server.Number() == 0,
		"Oversold: one piece, two buyers, and the stock says 0 as if all were well.", "超卖：一件货，两个买家，库存还显示 0，好像一切正常。")
}

// d12mutex is the lock of the language: each process has its own.
func d12mutex(p *play.Play, server *play.MariaDB) {
	p.Act("under sync.Mutex, in two processes", "用 sync.Mutex，两个进程")
	server.Stock(1)
	a, b := p.Process("A", "", "", 0), p.Process("B", "", "", 0)
	a.Database(server.DSN())
	b.Database(server.DSN())
	a.Mutex()
	seenA := a.Read()
	p.Show(!a.TryMutex(), "In the same process a second goroutine does not get in: there the mutex does its work.",
		"同一个进程里，第二个 goroutine 进不来：在这里互斥锁是管用的。")
	b.Mutex()
	seenB := b.Read()
	a.Write(seenA - 1)
	a.Unmutex()
	b.Write(seenB - 1)
	b.Unmutex()
	p.ShowClash("Two processes have two mutexes.", "两个进程有两把互斥锁。")
	p.Show(seenA == 1 && seenB == 1 && server.Number() == 0,
		"One piece is sold twice. This is why distributed locks exist.", "一件货卖了两次。这就是为什么要有分布式锁。")
}

// d12condition is the flaw that takes two: both have checked, and the condition of the UPDATE stops neither.
func d12condition(p *play.Play, server *play.MariaDB) {
	p.Act("read, check, and the condition number >= 0", "读、查，再加上条件 number >= 0")
	server.Stock(10)
	a, b := p.Actor("A"), p.Actor("B")
	stockA, stockB := &d12stock.Stock{DB: server.Client(a)}, &d12stock.Stock{DB: server.Client(b)}
	err := stockA.SubtractAsPrinted(p.Context())
	p.Show(err != nil && strings.Contains(err.Error(), "syntax") && server.Number() == 10,
		"The article writes number-=10, which is not SQL. From here on the lab sends number = number - 10.",
		"文章写的是 number-=10，这不是 SQL。下面实验改为发送 number = number - 10。")
	var soldA bool
	pause := a.Until("UPDATE", func() { soldA, err = stockA.Sell(p.Context(), 10) })
	a.Says("has seen 10 pieces, which are enough, and stands still before its UPDATE.", "看到有 10 件，够卖，在 UPDATE 之前停住。")
	soldB, errB := stockB.Sell(p.Context(), 10)
	pause.Resume()
	p.Show(err == nil && errB == nil && soldA && soldB && server.Number() == -10,
		"Both passed the check. The condition tests the stock before the sale, and 0 >= 0 holds: "+
			"20 of 10 pieces are sold, and the stock is -10.",
		"两个人都通过了检查。条件看的是卖之前的库存，0 >= 0 成立：10 件货卖出 20 件，库存变成 -10。")
}

// d12correct is the article's own example of the stocktaking.
func d12correct(p *play.Play, server *play.MariaDB) {
	p.Act("the same condition in the stocktaking", "盘点里的同一个条件")
	server.Stock(0)
	admin := p.Actor("admin")
	corrected, err := (&d12stock.Stock{DB: server.Client(admin)}).Correct(p.Context(), -5)
	p.Show(err == nil && corrected && server.Number() == -5,
		"The article says that a correction by -5 is refused at a stock of 0. It is carried out: the stock is -5.",
		"文章说库存为 0 时，减 5 的更正会被拒绝。实际上它执行了：库存变成 -5。")
}

func d12setTo(p *play.Play, server *play.MariaDB) {
	p.Act("stocktaking that sets a value", "盘点时直接设值")
	server.Stock(10)
	admin, shop := p.Actor("admin"), p.Actor("shop")
	admin.Says("has counted 20 pieces where the books say 10, and walks to the desk.", "清点出 20 件，账面是 10 件，走回办公桌。")
	sold, err := (&d12stock.Stock{DB: server.Client(shop)}).Sell(p.Context(), 5)
	if err != nil || !sold {
		p.Fatal("nothing was sold", err)
	}
	err = (&d12stock.Stock{DB: server.Client(admin)}).SetTo(p.Context(), 20)
	p.Show(err == nil && server.Number() == 20,
		"15 pieces are there and the books say 20: the 5 that were sold are forgotten.",
		"实际有 15 件，账面是 20 件：卖掉的 5 件被忘了。")
}

func d12locked(p *play.Play, server *play.MariaDB) {
	server.Stock(1)
	a, b := p.Process("A", server.URL(), key, lease), p.Process("B", server.URL(), key, lease)
	a.Database(server.DSN())
	b.Database(server.DSN())
	a.Lock()
	seen := a.Read()
	p.Show(!b.TryLock(), "B, in another process, has to wait.", "另一个进程里的 B 必须等。")
	a.Write(seen - 1)
	a.Unlock()
	b.Lock()
	p.Show(b.Read() == 0, "Then it sees that nothing is left, and sells nothing.", "轮到它时，它看到没货了，什么也不卖。")
	b.Unlock()
	p.ShowAlone("One piece, one buyer.", "一件货，一个买家。")
}

func d12atomic(p *play.Play, server *play.MariaDB) {
	server.Stock(10)
	a := p.Actor("A")
	db := server.Client(a)
	const change = "UPDATE goods SET number = number + ? WHERE id = 1 AND number + ? >= 0"
	rows, err := db.Exec(p.Context(), change, -10, -10)
	p.Show(err == nil && rows == 1 && server.Number() == 0, "The first sale of 10 pieces.", "第一笔：卖出 10 件。")
	rows, err = db.Exec(p.Context(), change, -10, -10)
	p.Show(err == nil && rows == 0 && server.Number() == 0,
		"The second one changes no row: the condition tests the stock after the sale.",
		"第二笔没有改动任何行：条件看的是卖之后的库存。")
	rows, err = db.Exec(p.Context(), change, -5, -5)
	p.Show(err == nil && rows == 0 && server.Number() == 0, "The correction by -5 is refused as well.",
		"减 5 的更正同样被拒绝。")
	server.Exec("UPDATE goods SET number = 10 WHERE id = 1")
	p.Say("10 pieces are in the books. The administrator has counted 20: a difference of +10. Meanwhile 5 are sold.",
		"账面 10 件。管理员清点出 20 件：差值 +10。这期间卖出 5 件。")
	_, err = db.Exec(p.Context(), change, -5, -5)
	if err != nil {
		p.Fatal(err)
	}
	_, err = db.Exec(p.Context(), change, 10, 10)
	p.Show(err == nil && server.Number() == 15,
		"15: the correction and the sale do not know of each other, and need not.", "15：更正和销售互不知情，也不需要知情。")
}
