// What a process does with its lock. process.go carries the orders and the answers; serve.go is the other end.

package play

import (
	"strings"
	"time"

	"github.com/interlock-go/interlock/fence"
	"github.com/interlock-go/interlock/lab/internal/story"
)

// Lock takes the lock, which is free or about to be.
func (c *Process) Lock() {
	c.p.Helper()
	c.send(&order{Do: "lock", Wait: patience.Milliseconds()})
	r := c.answer()
	if !r.OK {
		c.p.Fatalf("%s cannot take the lock: %s", c.name, r.Why)
	}
	c.granted("Lock", r)
}

// slowAnswers is how often a server may not have said within a wait who has the lock, because the machine was busy.
const slowAnswers = 10

// LockFor takes the lock, waiting at most that long, and reports whether it got it.
func (c *Process) LockFor(wait time.Duration) bool {
	c.p.Helper()
	o := &order{Do: "lock", Wait: wait.Milliseconds()}
	r := c.ask(o)
	for n := 0; n < slowAnswers && (r.Why == "deadline" || r.Why == "unavailable"); n++ {
		r = c.ask(o)
	}
	return c.takes("Lock", r)
}

// BeginLock begins to wait for the lock; Granted waits for the grant.
func (c *Process) BeginLock() {
	c.p.Helper()
	c.send(&order{Do: "lock", Wait: patience.Milliseconds()})
	c.p.awaitQueued(c.url, c.lock, c.name)
	c.waits = true
	c.p.set(c.name, story.Waits)
	c.p.record(c.name, story.Says, story.T("Lock: waits in the queue.", "Lock：排队等待。"),
		&story.Message{To: c.server(), Way: story.Request})
}

// Granted waits for what BeginLock asked for.
func (c *Process) Granted() bool {
	c.p.Helper()
	return c.got("Lock")
}

// TryLock takes the lock if it is free, and reports whether it did.
func (c *Process) TryLock() bool {
	c.p.Helper()
	c.send(&order{Do: "try"})
	return c.got("TryLock")
}

// got tells the answer to an acquisition.
func (c *Process) got(call string) bool {
	c.p.Helper()
	return c.takes(call, c.answer())
}

// takes tells an answer to an acquisition.
func (c *Process) takes(call string, r *report) bool {
	c.p.Helper()
	if !r.OK {
		if c.waits {
			c.p.set(c.name, story.Idle)
		}
		c.said(c.refusal(call, r.Why))
		return false
	}
	c.granted(call, r)
	return true
}

// granted tells of a grant.
func (c *Process) granted(call string, r *report) {
	c.stamp = fence.Stamp{Token: r.Token, Nonce: r.Nonce}
	c.p.set(c.name, story.Holds)
	c.said(story.T("%s  →  held, token %s", "%s  →  拿到锁，令牌 %s", call, c.p.Token(r.Token)))
}

// said tells what the process asked its engine, and the answer. It asked earlier if it has been waiting.
func (c *Process) said(text story.Text) {
	m := &story.Message{To: c.server(), Way: story.Both}
	if c.waits {
		c.waits, m.Way = false, story.Reply
	}
	c.p.said(c.name, text, m)
}

// server is the engine as the picture names it.
func (c *Process) server() string {
	scheme, _, _ := strings.Cut(c.url, ":")
	return engine(scheme)
}

func (c *Process) refusal(call, why string) story.Text {
	switch why {
	case "held":
		return story.T("%s  →  ErrHeld: another owner holds it", "%s  →  ErrHeld：锁在别人手里", call)
	case "lost":
		return story.T("%s  →  ErrLost: you had it, and another may be inside", "%s  →  ErrLost：你曾持有它，现在可能已有别人", call)
	case "unavailable":
		return story.T("%s  →  ErrUnavailable: not confirmed, so it does not count",
			"%s  →  ErrUnavailable：没有得到确认，不算拿到", call)
	case "deadline":
		return story.T("%s  →  the time to wait is over", "%s  →  等待的时间到了", call)
	default:
		c.p.Fatalf("%s: %s: %s", c.name, call, why)
		return story.Text{}
	}
}

// Unlock releases the lock. It reports false if the process is told that it had lost it.
func (c *Process) Unlock() bool {
	c.p.Helper()
	r := c.ask(&order{Do: "unlock"})
	c.p.set(c.name, story.Idle)
	if !r.OK {
		c.p.step(c.name, story.Asks, c.refusal("Unlock", r.Why)) // a client that knows of its loss asks nobody
		return false
	}
	c.said(story.T("Unlock  →  nil: released", "Unlock  →  nil：已释放"))
	return true
}

// Reenter takes the lock once more in the context of the hold, and reports whether it could.
func (c *Process) Reenter() bool {
	c.p.Helper()
	r := c.ask(&order{Do: "again", Wait: patience.Milliseconds()})
	if !r.OK {
		c.p.step(c.name, story.Asks, c.refusal("Lock(lease.Context)", r.Why))
		return false
	}
	c.p.step(c.name, story.Asks, story.T("Lock(lease.Context)  →  held again, the same token %s",
		"Lock(lease.Context)  →  重入，令牌不变，仍是 %s", c.p.Token(r.Token)))
	return true
}

// Leave ends what Reenter began.
func (c *Process) Leave() {
	c.p.Helper()
	c.must(&order{Do: "leave"})
	c.Says("Unlock of the inner hold: the outer one stays.", "释放内层：外层仍然持有。")
}

// Renewed waits until the lease was renewed n times more.
func (c *Process) Renewed(n int) {
	c.p.Helper()
	c.must(&order{Do: "renewals", N: n})
}

// Told waits until the process is told that its lock is lost.
func (c *Process) Told() {
	c.p.Helper()
	select {
	case <-c.lost:
		c.p.set(c.name, story.Idle)
		c.p.step(c.name, story.Says, story.T("lease.Lost fires, its context is cancelled: it stops working.",
			"lease.Lost 触发，context 被取消：停止工作。"))
	case <-c.p.Context().Done():
		c.p.Fatal(c.p.Context().Err())
	case <-time.After(patience):
		c.p.Fatalf("%s was never told of its loss", c.name)
	}
}

// Warm takes and releases the lock once, of which the story does not tell.
func (c *Process) Warm() {
	c.p.Helper()
	c.must(&order{Do: "lock", Wait: patience.Milliseconds()})
	c.must(&order{Do: "unlock"})
}
