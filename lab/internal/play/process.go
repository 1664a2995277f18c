// The process: how it is started, told what to do and heard. serve.go is the other end.

package play

import (
	"strings"
	"time"

	"github.com/interlock-go/interlock/fence"
	"github.com/interlock-go/interlock/internal/childproc"
	"github.com/interlock-go/interlock/lab/internal/story"
)

// Process is a client that uses the sound lock, in a process of its own, so that kill -9 and SIGSTOP are the real ones.
type Process struct {
	p    *Play
	name string
	url  string
	lock string

	child   *childproc.Child
	answers chan *report
	queues  chan struct{} // it waits, in an exhibit
	lost    chan struct{}
	ended   chan error // why it says no more

	stamp fence.Stamp // what it shows to a resource, as of its last grant
	lease time.Duration
	act   *story.Act
	waits bool // it has asked for the lock, and is not answered yet
}

// Process starts a process that opens the engine at url; "" opens none. Its locks all have the same name.
func (p *Play) Process(name, url, lock string, lease time.Duration) *Process {
	p.Helper()
	p.cast(name)
	c := &Process{
		p: p, name: name, url: url, lock: lock, lease: lease, act: p.now(),
		answers: make(chan *report, 1), queues: make(chan struct{}, 1), lost: make(chan struct{}, 1),
		ended: make(chan error, 1),
	}
	by := p.Tap(name, url) // before the process, so that it ends after it
	if err := c.start(); err != nil {
		p.Fatalf("a process for %s: %v", name, err)
	}
	if url != "" {
		c.must(&order{Do: "open", URL: by, Lease: lease.Milliseconds(), Wait: patience.Milliseconds()})
	}
	return c
}

func (c *Process) start() error {
	cmd, err := childproc.Self(c.p.Context(), role, c.name)
	if err != nil {
		return err
	}
	if c.child, err = childproc.Open(cmd, nil); err != nil {
		return err
	}
	go c.read() // ends with the process, which the clean-up kills at the latest
	c.p.Cleanup(c.child.Kill)
	return nil
}

// read hands out what the process says until it ends.
func (c *Process) read() {
	for {
		r := new(report)
		if err := c.child.Receive(r); err != nil {
			c.ended <- err
			return
		}
		switch {
		case r.Renewed:
			c.p.beat(c.act, c.name, c.lease)
		case r.Lost:
			signal(c.lost)
		case r.Queues:
			signal(c.queues)
		case r.Command != "":
			text, way := ZooSaid(r.Command, r.Answer)
			c.p.record(c.name, kindOf(way), text, &story.Message{To: "ZooKeeper", Way: way})
		default:
			c.answers <- r
		}
	}
}

// signal tells a director what it may have been told before.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// send gives an order; answer waits for its report.
func (c *Process) send(o *order) {
	c.p.Helper()
	o.Name = c.lock
	if err := c.child.Send(o); err != nil {
		c.p.Fatalf("%s: %v", c.name, err)
	}
}

func (c *Process) answer() *report {
	c.p.Helper()
	select {
	case r := <-c.answers:
		return r
	case err := <-c.ended:
		c.p.Fatalf("%s: %v", c.name, err)
	case <-time.After(patience):
		c.p.Fatalf("%s does not answer", c.name)
	}
	return nil
}

func (c *Process) ask(o *order) *report {
	c.p.Helper()
	c.send(o)
	return c.answer()
}

// must gives an order that has to succeed.
func (c *Process) must(o *order) *report {
	c.p.Helper()
	r := c.ask(o)
	if !r.OK {
		c.p.Fatalf("%s: %s: %s", c.name, o.Do, r.Why)
	}
	return r
}

// Says tells what the process does or thinks.
func (c *Process) Says(en, zh string, args ...any) {
	c.p.step(c.name, story.Says, story.T(en, zh, args...))
}

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

// BeginTry asks for the lock without waiting for another owner, and tells nothing; Tried waits for what becomes of it.
func (c *Process) BeginTry() {
	c.p.Helper()
	c.send(&order{Do: "try"})
}

// Tried reports whether the process got what BeginTry asked for.
func (c *Process) Tried() bool {
	c.p.Helper()
	return c.got("TryLock")
}

// Newer reports whether the process's last grant has a larger token than another's.
func (c *Process) Newer(than *Process) bool { return c.stamp.Token > than.stamp.Token }

// Stop makes the process stand still, as SIGSTOP, a swapped-out machine or a long garbage collection do.
func (c *Process) Stop() {
	c.p.Helper()
	if err := c.child.Suspend(); err != nil {
		c.p.Fatalf("%s: SIGSTOP: %v", c.name, err)
	}
	if c.p.state(c.name) == story.Holds {
		c.p.set(c.name, story.Still)
	} else {
		c.p.set(c.name, story.Halted)
	}
	c.p.step(c.name, story.Fate,
		story.T("stands still (SIGSTOP), as in a long garbage collection.", "停住了（SIGSTOP），就像一次很长的 GC。"))
}

// Continue lets it go on. It believes what its lease tells it, before it does anything else: whether it has the lock.
func (c *Process) Continue() bool {
	c.p.Helper()
	if err := c.child.Resume(); err != nil {
		c.p.Fatalf("%s: SIGCONT: %v", c.name, err)
	}
	r := c.ask(&order{Do: "err"})
	if r.OK {
		c.p.set(c.name, story.Holds)
		c.p.step(c.name, story.Fate,
			story.T("goes on. lease.Err: nil, the lock is still held.", "继续运行。lease.Err：nil，锁仍在手里。"))
		return true
	}
	c.p.set(c.name, story.Idle)
	c.p.step(c.name, story.Fate,
		story.T("goes on (SIGCONT). The first look at lease.Err says ErrLost, without asking anyone.",
			"继续运行（SIGCONT）。第一次查看 lease.Err 就是 ErrLost，不用问任何人。"))
	return false
}

// Kill ends the process with kill -9.
func (c *Process) Kill() {
	c.p.Helper()
	if c.child.Ended() {
		c.p.Fatalf("%s %s before it was killed", c.name, c.child.State())
	}
	c.child.Kill()
	c.p.set(c.name, story.Dead)
	c.p.step(c.name, story.Fate, story.T("is killed (kill -9).", "被杀死（kill -9）。"))
}

// order is what the director tells a process of the sound lock to do.
type order struct {
	Do    string `json:"do"`
	URL   string `json:"url,omitempty"`
	Name  string `json:"name,omitempty"`
	Lease int64  `json:"lease,omitempty"` // in ms
	Wait  int64  `json:"wait,omitempty"`  // in ms
	N     int    `json:"n,omitempty"`
}

// report is what it answers. One with Lost or Renewed answers no order: the process has been told of the loss of its
// lock, or its lease was renewed.
type report struct {
	Renewed bool `json:"renewed,omitempty"`

	OK    bool   `json:"ok"`
	Lost  bool   `json:"lost,omitempty"`
	Token uint64 `json:"token,omitempty"`
	Nonce string `json:"nonce,omitempty"`
	Why   string `json:"why,omitempty"` // held, lost, released, unavailable, deadline, or another error's text
	N     int64  `json:"n,omitempty"`

	Outcome string `json:"outcome,omitempty"` // of a transaction
	Fenced  int64  `json:"fenced,omitempty"`  // the number behind the fence
	Seen    uint64 `json:"seen,omitempty"`    // the token that a fence has seen, if it refused an older one
	Request string `json:"request,omitempty"` // of an order that was taken from a queue
	Node    string `json:"node,omitempty"`    // of ZooKeeper, that the process has made

	// These answer no order either: a command of an exhibit that the process runs, and that it waits from now on.
	Command string `json:"command,omitempty"`
	Answer  string `json:"answer,omitempty"`
	Queues  bool   `json:"queues,omitempty"`
}
