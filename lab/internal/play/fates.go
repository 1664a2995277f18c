package play

import "github.com/interlock-go/interlock/lab/internal/story"

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
