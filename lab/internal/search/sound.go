package search

import (
	"sync"

	"github.com/interlock-go/interlock/internal/handoff"
	"github.com/interlock-go/interlock/lab/internal/play"
)

// soundBounds are the models of interlock's protocol that are searched: as many clients as the exhibits have, each
// once, and two clients twice, so that a late message meets a later hold.
var soundBounds = []handoff.LeaseBounds{
	{Clients: 3, Requests: 1, Lease: 2, Horizon: 1, Messages: 2},
	{Clients: 2, Requests: 2, Lease: 2, Horizon: 1, Messages: 2},
}

// soundLimit bounds these searches, which end long before it.
const soundLimit = 2_000_000

// soundResults are searched for once in a process.
var soundResults = sync.OnceValue(func() []handoff.Result { return searchSound(handoff.Sound()) })

// searchSound searches interlock's protocol with some of its rules.
func searchSound(rules handoff.Rules) []handoff.Result {
	var all []handoff.Result
	for _, b := range soundBounds {
		all = append(all, handoff.SearchLeases(rules, b, soundLimit))
	}
	return all
}

// sound tells of the same search in interlock.
func sound(p *play.Play) {
	p.Helper()
	p.Sound("the protocol of interlock, searched in the same way", "用同样的方法搜索 interlock 的协议")
	p.Say("Searched is the protocol's model (internal/handoff), not the program: clients that ask, renew, release, "+
		"take back, die and look at their own clocks, and a network that loses, delays, reorders and repeats "+
		"messages, of which two are under way at once. The number of faults has no bound. A test searches the client "+
		"itself, in virtual time on the engine in memory: two clients, at most two faults.",
		"这里搜索的是协议的模型（internal/handoff），不是程序本身：客户端会请求、续期、释放、撤回、崩溃，并查看自己的时钟；"+
			"网络会丢失、延迟、重排、重复消息，同时在途的消息最多两条。故障次数没有上限。另有测试在虚拟时间里用内存引擎搜索客户端本身："+
			"两个客户端，最多两次故障。")
	for i, r := range soundResults() {
		b := soundBounds[i]
		p.Show(r.Complete && r.Fault == "",
			"%d clients, requests of each: %d. No two are inside, and no lock is without an owner, in %d states, %d "+
				"moves; the longest way has %d.",
			"%d 个客户端，每个请求 %d 次：没有两个人同时在里面，也没有无主的锁；共 %d 个状态，%d 次转移，最长的路径有 %d 步。",
			b.Clients, b.Requests, r.States, r.Steps, r.Depth)
	}
	p.Show(true, "None within any number of moves and faults.", "无论多少步、多少次故障，都没有找到。")
}
