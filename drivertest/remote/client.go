package remote

import (
	"context"
	"iter"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// The driver of this process: each call becomes a message (wire.go) to the child, and waits for its answer (remote.go).

// client is the driver in front of a process.
type client struct {
	p      *Process
	traits driver.Traits
}

func (c *client) Traits() driver.Traits { return c.traits }

// Close closes the driver in the child and ends the child, once.
func (c *client) Close() (err error) {
	c.p.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		answer, lost := c.p.ask(ctx, &message{Op: "close"}, &call{})
		if lost == nil {
			err = answer.Err.unpack()
		}
		c.p.Kill()
	})
	return err
}

func (c *client) Acquire(ctx context.Context, r *driver.Request) (driver.Grant, error) {
	return c.grant(ctx, &message{Op: "acquire", Request: r})
}

func (c *client) Requeue(ctx context.Context, give *driver.Release, r *driver.Request) (driver.Grant, error) {
	return c.grant(ctx, &message{Op: "requeue", Release: give, Request: r})
}

func (c *client) Convert(ctx context.Context, beside string, r *driver.Request) (driver.Grant, error) {
	return c.grant(ctx, &message{Op: "convert", Beside: beside, Request: r})
}

func (c *client) Adopt(ctx context.Context, from string, r *driver.Request) (driver.Grant, error) {
	return c.grant(ctx, &message{Op: "adopt", Beside: from, Request: r})
}

func (c *client) Resize(ctx context.Context, key driver.Key, limit int) error {
	return c.plain(ctx, &message{Op: "resize", Key: key, Limit: limit})
}

// AcquireAll counts the leases from before the message was sent, by this process's clock: the other process's instants
// mean nothing here.
func (c *client) AcquireAll(ctx context.Context, rs []*driver.Request) ([]driver.Grant, error) {
	sent := time.Now()
	answer, err := c.valued(ctx, &message{Op: "acquire all", All: rs}, &call{all: rs})
	if err != nil {
		return nil, err
	}
	for i := range answer.Grants {
		if !answer.Grants[i].Sent.IsZero() {
			answer.Grants[i].Sent = sent // as in granted
		}
	}
	return answer.Grants, nil
}

// grant makes a call that is answered with a grant.
func (c *client) grant(ctx context.Context, m *message) (driver.Grant, error) {
	return c.granted(ctx, m, &call{r: m.Request})
}

// granted is grant for a call with callbacks of its own.
func (c *client) granted(ctx context.Context, m *message, about *call) (driver.Grant, error) {
	sent := time.Now()
	answer, err := c.p.ask(ctx, m, about)
	if err == nil {
		err = answer.Err.unpack()
	}
	if err != nil {
		return driver.Grant{}, err
	}
	if !answer.Grant.Sent.IsZero() {
		// The child's monotonic clock means nothing here. This instant is earlier than the child's own, so the trust
		// window only gets shorter.
		answer.Grant.Sent = sent
	}
	return answer.Grant, nil
}

func (c *client) Release(ctx context.Context, r *driver.Release) error {
	return c.plain(ctx, &message{Op: "release", Release: r})
}

func (c *client) Break(ctx context.Context, key driver.Key, token uint64) error {
	return c.plain(ctx, &message{Op: "break", Key: key, Token: token})
}

// plain makes a call that is answered with an error or nothing.
func (c *client) plain(ctx context.Context, m *message) error {
	answer, err := c.p.ask(ctx, m, &call{})
	if err != nil {
		return err
	}
	return answer.Err.unpack()
}

// Renew hands on each answer as it comes. If the child ends in between, each hold is answered once all the same.
func (c *client) Renew(ctx context.Context, batch []driver.Renewal, done func(int, error)) {
	var mu sync.Mutex
	answered := make(map[int]bool)
	once := func(i int, err error) {
		mu.Lock()
		again := answered[i]
		answered[i] = true
		mu.Unlock()
		if !again {
			done(i, err)
		}
	}
	_, err := c.p.ask(ctx, &message{Op: "renew", Batch: batch}, &call{done: once})
	if err != nil {
		for i := range batch {
			once(i, err)
		}
	}
}

// Locks fetches the whole list in one message, so the loop over it holds nothing up in the other process.
func (c *client) Locks(ctx context.Context, prefix string) iter.Seq2[driver.LockInfo, error] {
	return func(yield func(driver.LockInfo, error) bool) {
		answer, err := c.p.ask(ctx, &message{Op: "locks", Prefix: prefix}, &call{})
		if err != nil {
			yield(driver.LockInfo{}, err)
			return
		}
		for _, info := range answer.Locks {
			if !yield(info, nil) {
				return
			}
		}
		if err := answer.Err.unpack(); err != nil {
			yield(driver.LockInfo{}, err)
		}
	}
}

func (c *client) Diagnose(ctx context.Context) []driver.Finding {
	answer, err := c.p.ask(ctx, &message{Op: "diagnose"}, &call{})
	if err != nil {
		return []driver.Finding{{Check: "process", Level: driver.LevelFail, Detail: err.Error()}}
	}
	return answer.Findings
}

// OnReconnect tells of nothing: the other process says only what it is asked. Holders learn by their next renewals what
// a server has forgotten.
func (c *client) OnReconnect(func()) (stop func()) { return func() {} }
