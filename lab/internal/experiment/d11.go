package experiment

import (
	"context"
	"fmt"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/lab/exhibit/d11fixed"
	"github.com/interlock-go/interlock/lab/internal/play"
	"github.com/interlock-go/interlock/lab/internal/story"
)

// waiters is how many wait for the lock in D11.
const waiters = 10

func d11() *Experiment {
	return &Experiment{
		ID: "D11", Title: story.T("ZooKeeper: one fixed node", "ZooKeeper：一个固定节点"), Needs: []string{"zookeeper"},
		About: story.T("Whoever creates the ephemeral node has the lock; all others watch it. Two are never inside. "+
			"But each release wakes everybody who waits, and all but one go back to sleep: the herd.",
			"谁创建了临时节点谁就拿到锁，其他客户端都监视它。不会有两个客户端同时拿到锁。但每次释放都会唤醒所有等待者，除了一个，其余都白白唤醒一次：惊群。"),
		run: func(p *play.Play) {
			server := p.ZooKeeper()
			p.Act("ten wait for one node", "十个人等同一个节点")
			d11herd(p, server)
			p.Sound("ten wait in a queue of sequential nodes", "十个人在顺序节点组成的队列里等")
			d11queue(p, server)
		},
	}
}

// names are those of the crowd in the picture.
func names() []string {
	var all []string
	for i := range waiters {
		all = append(all, fmt.Sprintf("W%d", i+1))
	}
	return all
}

// taker is one who takes a lock and gives it back.
type taker struct {
	name   string
	lock   func(ctx context.Context) error
	unlock func(ctx context.Context) error
}

// crowd has all of them wait at once, and returns who has got it, one after the other.
func crowd(p *play.Play, all []*taker, ready func(waiting int)) <-chan *taker {
	p.Helper()
	got := make(chan *taker, len(all))
	for i, w := range all {
		go func() { // ends when it has the lock
			if err := w.lock(p.Context()); err != nil {
				p.Errorf("waiter %d: %v", i+1, err)
				w = nil
			}
			got <- w
		}()
		ready(i + 1)
	}
	return got
}

func d11herd(p *play.Play, server *play.ZooKeeper) {
	a := p.Actor("A")
	holder := &d11fixed.Lock{Conn: server.Session(), Path: "/lock"}
	err := holder.Lock(p.Context())
	a.Got(true, err == nil, err)
	var all []*taker
	p.Crowd(names())
	for _, name := range names() {
		l := &d11fixed.Lock{Conn: server.Session(), Path: "/lock"}
		all = append(all, &taker{name, l.Lock, func(context.Context) error { return l.Unlock() }})
	}
	got := crowd(p, all, server.AwaitWatches)
	p.Mark(story.Waits, names()...)
	p.Say("%d clients wait. Each watches the node /lock.", "%d 个客户端在等，每个都监视节点 /lock。", waiters)
	begin := server.Woken()
	a.Freed(holder.Unlock())
	winner := next(p, got)
	woken := server.Woken() - begin
	p.Mark(story.Woken, names()...)
	p.Mark(story.Holds, winner.name)
	p.Show(woken == waiters,
		"One release has woken %d clients. One has got the lock, the others have come for nothing.",
		"一次释放唤醒了 %d 个客户端。一个拿到锁，其余被白白唤醒。", woken)
	for left := waiters - 1; left > 0; left-- {
		server.AwaitWatches(left) // the losers watch again
		release(p, winner)
		winner = next(p, got)
	}
	release(p, winner)
	p.Mark(story.Idle, names()...)
	all10 := server.Woken() - begin
	p.Show(all10 == waiters*(waiters+1)/2,
		"Until all %d had their turn, there were %d wake-ups: it grows with the square.",
		"%d 个人全部轮到一遍，一共唤醒 %d 次：按平方增长。", waiters, all10)
}

func d11queue(p *play.Play, server *play.ZooKeeper) {
	var all []*taker
	queued := make(chan struct{}, waiters)
	for _, name := range append([]string{"A"}, names()...) {
		all = append(all, d11taker(p, server, name, queued))
	}
	holder := all[0]
	p.Crowd(append([]string{"A"}, names()...))
	p.Mark(story.Holds, holder.name)
	if err := holder.lock(p.Context()); err != nil {
		p.Fatal(err)
	}
	p.Say("A holds the lock. It watches its own node, so that it learns when an operator takes the lock away, "+
		"and that of the lock, until another client asks for it.",
		"A 持有锁。它监视自己的节点，好知道运维人员是否收走了锁；也监视锁的节点，直到有别的客户端来要锁。")
	server.AwaitWatches(2)
	// The number of watches alone does not say that the first is queued: A had a second one until then.
	got := crowd(p, all[1:], func(waiting int) {
		select {
		case <-queued:
		case <-p.Context().Done():
			p.Fatal(p.Context().Err())
		case <-time.After(patience):
			p.Fatalf("waiter %d is not queued", waiting)
		}
		server.AwaitWatches(waiting + 1)
	})
	p.Mark(story.Waits, names()...)
	p.Say("%d clients wait. Each watches the one node before its own.", "%d 个客户端在等，每个只监视自己前面的那一个节点。", waiters)
	begin := server.Woken()
	release(p, holder)
	winner := next(p, got)
	p.Mark(story.Idle, holder.name)
	p.Mark(story.Holds, winner.name)
	woken := server.Woken() - begin
	p.Show(woken == 2, "One release: %d messages, one to the next in line, and one to A about its own node.",
		"一次释放：%d 条消息，一条给队列里的下一个，一条给 A，通知它自己的节点已消失。", woken)
	p.Show(winner == all[1], "The lock went to who came first.", "锁交给最先来的人。")
	inOrder := true
	for _, expected := range all[2:] {
		release(p, winner)
		winner = next(p, got)
		inOrder = inOrder && winner == expected
	}
	release(p, winner)
	p.Mark(story.Idle, names()...)
	woken = server.Woken() - begin
	p.Show(inOrder && woken <= 2*(waiters+1),
		"All %d had their turn, in the order in which they came, and each release woke one waiter.",
		"%d 个人按到来的顺序全部轮到，每次释放只唤醒一个等待者。", waiters)
}

// d11taker is a client of interlock, which signals when it is queued.
func d11taker(p *play.Play, server *play.ZooKeeper, name string, queued chan<- struct{}) *taker {
	p.Helper()
	signal := func(context.Context, interlock.Event) {
		select {
		case queued <- struct{}{}:
		default: // a wait that was queued anew; nobody counts those
		}
	}
	locks, err := interlock.Open(p.Context(), p.Tap(name, server.URL()), &interlock.Options{
		Observer: &interlock.Observer{Waiting: signal},
	})
	if err != nil {
		p.Fatal(err)
	}
	p.Cleanup(func() { _ = locks.Close() }) // all is released
	var lease *interlock.Lease
	return &taker{
		name,
		func(ctx context.Context) (err error) {
			lease, err = locks.Lock(ctx, key)
			return err
		},
		func(ctx context.Context) error { return lease.Unlock(ctx) },
	}
}

// next returns who has got the lock.
func next(p *play.Play, got <-chan *taker) *taker {
	p.Helper()
	select {
	case w := <-got:
		if w == nil {
			p.Fatal("a waiter has failed")
		}
		return w
	case <-p.Context().Done():
		p.Fatal(p.Context().Err())
	case <-time.After(patience):
		p.Fatal("no waiter gets the lock")
	}
	return nil
}

func release(p *play.Play, w *taker) {
	p.Helper()
	if err := w.unlock(p.Context()); err != nil {
		p.Fatal(err)
	}
}
