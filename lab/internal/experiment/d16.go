package experiment

import (
	"strings"

	"github.com/interlock-go/interlock/lab/exhibit/d16script"
	"github.com/interlock-go/interlock/lab/internal/play"
	"github.com/interlock-go/interlock/lab/internal/story"
)

func d16() *Experiment {
	return &Experiment{
		ID: "D16", Title: story.T("scripts: what one step is, and what it is not", "脚本：一步到底意味着什么"),
		Needs: []string{"redis"},
		About: story.T("Most repairs are scripts: nobody gets in between two of its commands. That is all they "+
			"promise. "+
			"What a script is given is text, and \"9\" > \"10\" is true of texts. A script that fails halfway "+
			"has done "+
			"its first half: nothing is taken back. And a server forgets the scripts that it was given.",
			"多数修补办法都是脚本：它的两条命令之间不会有别人。它保证的也只有这一点。交给脚本的都是文本，而文本比较时 \"9\" > \"10\" 成立。"+
				"脚本中途失败，前一半已经生效，不会撤销。服务器还会忘掉交给它的脚本。"),
		run: func(p *play.Play) {
			server := p.Redis()
			d16primer(p, server)
			d16text(p, server)
			d16halfway(p, server)
			p.Sound("the server forgets all scripts", "服务器忘掉所有脚本")
			d16forgotten(p, server)
		},
	}
}

// d16evals runs a script for a client and tells the whole of it.
func d16evals(p *play.Play, c *play.Actor, script, args string, eval func() (any, error)) (reply any, err error) {
	p.Helper()
	err = c.Quietly(func() (err error) {
		reply, err = eval()
		return err
	})
	answer := any(play.Answer(reply, err))
	if err != nil {
		answer = story.Volatile(err, "WRONGTYPE …")
	}
	c.Says("EVAL '%s' %s  →  %s", "EVAL '%s' %s  →  %s", script, args, answer)
	return reply, err
}

func d16primer(p *play.Play, server *play.Redis) {
	p.Act("a script, its keys and its arguments", "脚本、键和参数")
	a := p.Actor("A")
	stock := &d16script.Stock{Conn: a.Dial(server.Addr(), ""), Pieces: key}
	p.Say("EVAL sends a script, how many keys follow, the keys, and the arguments.",
		"EVAL 发送脚本、后面有几个键、这些键，然后是参数。")
	reply, err := d16evals(p, a, d16script.Primer, "1 stock 10",
		func() (any, error) { return stock.Sell(p.Context(), d16script.Primer, "10") })
	got, _ := reply.([]any)
	p.Show(err == nil && len(got) == 2 && got[0] == key && got[1] == "10",
		"In the script the keys are KEYS[1], KEYS[2], ..., and the arguments ARGV[1], ARGV[2], ... All are text.",
		"在脚本里，键是 KEYS[1]、KEYS[2]……，参数是 ARGV[1]、ARGV[2]……，全都是文本。")
}

func d16text(p *play.Play, server *play.Redis) {
	p.Act("numbers that are compared as text", "把数字当文本比较")
	p.Watch("Redis", server.Value(key))
	a := p.Actor("A")
	stock := &d16script.Stock{Conn: a.Dial(server.Addr(), ""), Pieces: key}
	server.Ask("SET", key, "9")
	p.Say("In stock: 9. A wants 10.", "库存 9 件，A 要 10 件。")
	reply, err := d16evals(p, a, d16script.AsText, "1 stock 10",
		func() (any, error) { return stock.Sell(p.Context(), d16script.AsText, "10") })
	p.Show(err == nil && reply == int64(-1),
		"Sold, and the stock is -1: \"9\" >= \"10\", because texts are compared from the left, and 9 is more than 1.",
		"卖出了，库存变成 -1：\"9\" >= \"10\" 成立，因为文本从左边开始比较，而 9 大于 1。")
	server.Ask("SET", key, "9")
	p.Say("The stock is 9 again, and the script compares numbers.", "库存恢复为 9，这次脚本比较数字。")
	reply, err = d16evals(p, a, d16script.AsNumbers, "1 stock 10",
		func() (any, error) { return stock.Sell(p.Context(), d16script.AsNumbers, "10") })
	p.Show(err == nil && reply == "sold out", "tonumber makes the difference.", "差别就在 tonumber。")
	server.Ask("DEL", key)
}

func d16halfway(p *play.Play, server *play.Redis) {
	p.Act("one step, of which one half fails", "一步，却只成功了一半")
	const names = "orders"
	p.Watch("Redis", server.Value(key))
	a := p.Actor("A")
	stock := &d16script.Stock{Conn: a.Dial(server.Addr(), ""), Pieces: key, Names: names}
	server.Ask("SET", key, "9")
	server.Ask("SET", names, "a text")
	p.Say("In stock: 9. By mistake the key of the orders is a text and not a list.", "库存 9 件。订单的键误存成了文本，不是列表。")
	_, err := d16evals(p, a, d16script.Halfway, "2 stock orders A",
		func() (any, error) { return stock.Order(p.Context(), d16script.Halfway, "A") })
	p.Show(err != nil && strings.Contains(err.Error(), "WRONGTYPE") && server.Look("GET", key) == "8",
		"The piece is gone, and nobody has bought it. Nobody got in between, but nothing is taken back either.",
		"货少了一件，却没有人买到。中间没有别人插进来，但也没有任何东西被撤销。")
	server.Ask("SET", key, "9")
	p.Say("The stock is 9 again, and the script looks at everything before it changes anything.",
		"库存恢复为 9，这次脚本先检查一切，再做修改。")
	reply, err := d16evals(p, a, d16script.CheckFirst, "2 stock orders A",
		func() (any, error) { return stock.Order(p.Context(), d16script.CheckFirst, "A") })
	p.Show(err == nil && reply == "orders is a string" && server.Look("GET", key) == "9",
		"It refuses, and the stock is untouched.",
		"它拒绝了，库存没有变。")
	server.Ask("DEL", key, names)
}

// d16forgotten is what happens to EVALSHA after SCRIPT FLUSH, a restart or a failover.
func d16forgotten(p *play.Play, server *play.Redis) {
	p.WatchLock("Redis", server.URL(), key)
	a, b := p.Process("A", server.URL(), key, lease), p.Process("B", server.URL(), key, lease)
	a.Lock()
	p.Say("interlock sends scripts by their names (EVALSHA), which saves their text each time.",
		"interlock 按名字发送脚本（EVALSHA），省去每次发送全文。")
	server.Ask("SCRIPT", "FLUSH")
	p.Fate("The server forgets all scripts (SCRIPT FLUSH), as after a restart or a failover.",
		"服务器忘掉所有脚本（SCRIPT FLUSH），就像重启或故障转移之后。")
	b.BeginLock()
	p.Show(a.Unlock(), "The release finds no script, sends the text, and is done: nobody hears of it.",
		"释放时找不到脚本，就发送全文，照样完成：没有人察觉。")
	b.Granted()
	p.Show(b.Unlock(), "B, which waited meanwhile, got in and out.", "期间一直在等的 B 也进来又出去了。")
	p.ShowAlone("Never were two inside.", "任何时刻都没有两个人同时在里面。")
}
