package experiment

import "github.com/interlock-go/interlock/lab/internal/play"

// d17stopped is the recipe in two processes, of which the holder is stopped until the server has ended its session.
func d17stopped(p *play.Play, server *play.ZooKeeper, redis *play.Redis) {
	p.Act("the recipe's holder stands still past its session", "标准做法的持有者停住，直到会话过期")
	a, b := p.Process("A", "", "", 0), p.Process("B", "", "", 0)
	goods := p.Resource(redis, 10, a, b)
	a.Session(server, "/stopped", lease)
	b.Session(server, "/stopped", lease)
	server.Make("/stopped")
	a.Enter()
	goods.Read(a)
	b.BeginEnter()
	a.Stop()
	p.Fate("A's session lasts 4 s without a sign of life. The server ends it, and deletes A's node.",
		"A 的会话在 4 秒没有动静之后，由服务器结束，A 的节点也被删除。")
	b.Entered()
	goods.Read(b)
	p.Show(goods.Write(b, 8), "B has sold two pieces. Its node is younger than A's, and so its token is larger.",
		"B 卖了两件。它的节点比 A 的新，所以令牌更大。")
	p.Show(!goods.Resume(a, 9), "A writes on. The recipe has told it nothing: its call to lock returned long ago.",
		"A 接着写。标准做法没有告诉它任何事：它的加锁调用早就返回了。")
	corrupted(p, goods)
	p.Show(!a.LooksForItsNode(), "Only when A looks does it learn of the end of its session.",
		"只有当 A 自己去看，才知道会话已经结束。")
	b.Leaves()
}
