package search

import (
	"context"
	"testing"

	"github.com/interlock-go/interlock/lab/internal/play"
	"github.com/interlock-go/interlock/lab/internal/story"
)

// Run searches an exhibit, replays what it finds on a real Redis, and tells it. What the replay does not show, or what
// the server answers otherwise than the model, is an error of t.
func (e *Exhibit) Run(ctx context.Context, t testing.TB) *story.Story {
	t.Helper()
	r, err := Search(ctx, e, Usual)
	if err != nil {
		t.Fatalf("%s: %v", e.ID, err)
	}
	p := play.New(ctx, t, e.ID, e.Title, e.about(r, Usual))
	server := p.Redis()
	for _, kind := range Kinds {
		if f := r.Found[kind]; f != nil {
			f.replay(p, e, server)
		}
	}
	p.Act("what the search did not find", "搜索没有找到的")
	for _, kind := range Kinds {
		if r.Found[kind] == nil {
			p.Show(true, "None: %[1]s.", "没有：%[2]s。", titles[kind].EN, titles[kind].ZH)
		}
	}
	sound(p)
	return p.Story()
}

// about tells what was searched.
func (e *Exhibit) about(r *Result, b Bounds) story.Text {
	faults := story.T("a client is killed, an answer is lost, time passes for longer than a lease",
		"客户端被杀死、应答丢失、过去的时间超过租约")
	if e.Clocks {
		faults = story.Join(faults, story.T(", a clock jumps", "、时钟跳变"))
	}
	return story.T("All schedules of %[1]d clients with at most %[2]d faults (%[3]s), the shortest first: %[5]d "+
		"states, %[6]d moves, the longest way has %[7]d. Each client takes the lock, writes and releases, with the "+
		"exhibit's own code; whoever is not chosen stands still. What was found is replayed on a real Redis.",
		"%[1]d 个客户端、最多 %[2]d 次故障（%[4]s）的全部调度，从最短的开始：%[5]d 个状态，%[6]d 次转移，最长的路径有 %[7]d 步。"+
			"每个客户端都用展品自己的代码加锁、写入、释放；没有轮到的就停着。找到的调度在真实的 Redis 上重放。",
		b.Clients, b.Faults, faults.EN, faults.ZH, r.States, r.Moves, r.Longest)
}

// replay plays a schedule on a real Redis, and shows that it fails there as in the model.
func (f *Found) replay(p *play.Play, e *Exhibit, server *play.Redis) {
	p.Helper()
	p.Act(titles[f.Kind].EN, titles[f.Kind].ZH)
	s := newStage(p, e, server)
	defer s.end()
	p.Say("Found by the search: moves: %d, faults among them: %d. No shorter schedule does this.",
		"搜索找到的：共 %d 步，其中故障 %d 步。没有更短的调度。", len(f.Moves), f.Faults)
	for _, m := range f.Moves {
		s.move(m)
	}
	agrees := s.agrees(f.last)
	f.show(s)
	p.Show(agrees, "The server has answered each command as the model had foreseen.", "服务器对每条命令的应答都和模型预计的一样。")
}

// show tells what the schedule has led to.
func (f *Found) show(s *stage) {
	s.Helper()
	switch f.Kind {
	case Robbed:
		s.ShowClash("Two are inside, and neither has had the lock for longer than its lease.",
			"两个人同时在里面，谁占用锁的时间都没有超过租约。")
	case Overrun:
		s.ShowClash("Two are inside. One has overrun its lease, and nothing tells it.",
			"两个人同时在里面。其中一个的租约已经到期，却没有人告诉它。")
	case Left:
		s.Show(s.tries(f.last.clone().newcomer()), "Nobody has the lock, all have released it, and it is closed.",
			"没有人持有锁，所有人都释放了，锁却关着。")
	case Never:
		s.pass()
		s.server.Look("TTL", key)
		s.Show(s.tries(f.last.clone().newcomer()),
			"Nobody has the lock, and it does not open again, however long one waits.",
			"没有人持有锁，无论等多久它都不会再打开。")
	}
}
