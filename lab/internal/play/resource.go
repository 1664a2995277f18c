package play

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/interlock-go/interlock/fence"
	"github.com/interlock-go/interlock/lab/internal/story"
	"github.com/interlock-go/interlock/redislock"
	"github.com/redis/rueidis"
)

// The keys of a resource: the same number twice, once as everybody may write it, and once behind a fence.
const (
	plainKey  = "number"
	fencedKey = "fenced"
)

var toRedis = &story.Message{To: "Redis", Way: story.Both}

// Resource is what a lock protects: a number in Redis, without a fence and behind [redislock.Guard]. The processes
// read and write both themselves.
type Resource struct {
	p      *Play
	server *Redis
}

// Resource puts n into both keys, and connects the processes that use them.
func (p *Play) Resource(server *Redis, n int, users ...*Process) *Resource {
	p.Helper()
	r := &Resource{p: p, server: server}
	for _, name := range []string{plainKey, fencedKey} {
		server.Ask("SET", name, Answer(int64(n), nil))
		p.Watch(name, server.Value(name))
	}
	r.Connect(users...)
	p.Say("%[1]d in stock, twice in Redis: %[2]s has no fence, %[3]s is behind redislock.Guard.",
		"库存 %[1]d，在 Redis 里存了两份：%[2]s 没有围栏，%[3]s 由 redislock.Guard 保护。", n, plainKey, fencedKey)
	return r
}

// Connect connects more processes, such as one that starts later.
func (r *Resource) Connect(users ...*Process) {
	r.p.Helper()
	for _, c := range users {
		c.must(&order{Do: "resource", URL: strings.TrimPrefix(r.p.Tap(c.name, r.server.URL()), "redis://")})
	}
}

// Values returns both numbers as the server has them.
func (r *Resource) Values() (plain, fenced int) {
	r.p.Helper()
	return number(r.server.Value(plainKey)()), number(r.server.Value(fencedKey)())
}

// Read has a process read both numbers.
func (r *Resource) Read(c *Process) {
	r.p.Helper()
	got := c.must(&order{Do: "see"})
	c.p.said(c.name, story.Same("GET "+plainKey+"  →  "+Answer(got.N, nil)), toRedis)
	c.p.said(c.name, story.T("guard.Get %s, token %s  →  %d", "guard.Get %s，令牌 %s  →  %d",
		fencedKey, c.p.Token(c.stamp.Token), got.Fenced), toRedis)
}

// Looks has a process look at its lease for the last time before it writes.
func (r *Resource) Looks(c *Process) {
	r.p.Helper()
	c.must(&order{Do: "err"})
	c.Says("lease.Err: nil, so it is about to write.", "lease.Err：nil，于是准备写入。")
}

// Write has a process write n to both, with the stamp of its grant and without another look at its lease. It reports
// whether the fence let it.
func (r *Resource) Write(c *Process, n int) bool {
	r.p.Helper()
	r.send(c, n)
	return r.wrote(c, n)
}

// Resume lets a process go on that was stopped when it was about to write: the write is the next that it does.
func (r *Resource) Resume(c *Process, n int) bool {
	r.p.Helper()
	r.send(c, n) // while it stands still, so that it reads nothing else before
	if err := c.child.Resume(); err != nil {
		r.p.Fatalf("%s: SIGCONT: %v", c.name, err)
	}
	c.p.set(c.name, story.Holds)
	c.p.step(c.name, story.Fate, story.T("goes on (SIGCONT), at the next line of its program: the write.",
		"继续运行（SIGCONT），从程序的下一行开始：写入。"))
	return r.wrote(c, n)
}

func (r *Resource) send(c *Process, n int) {
	r.p.Helper()
	c.send(&order{Do: "sell", N: n})
}

// wrote tells what became of both writes.
func (r *Resource) wrote(c *Process, n int) bool {
	r.p.Helper()
	got := c.answer()
	if !got.OK {
		r.p.Fatalf("%s cannot write: %s", c.name, got.Why)
	}
	value := Answer(int64(n), nil)
	token := c.p.Token(c.stamp.Token)
	c.p.said(c.name, story.Same("SET "+plainKey+" "+value+"  →  OK"), toRedis)
	if got.Seen == 0 {
		c.p.said(c.name, story.T("guard.Set %s %s, token %s  →  nil", "guard.Set %s %s，令牌 %s  →  nil",
			fencedKey, value, token), toRedis)
		return true
	}
	c.p.said(c.name, story.T("guard.Set %s %s, token %s  →  StaleError: token %s was there",
		"guard.Set %s %s，令牌 %s  →  StaleError：令牌 %s 已经来过", fencedKey, value, token, c.p.Token(got.Seen)), toRedis)
	return false
}

// resource is a process's way to what the lock protects.
type resource struct {
	client rueidis.Client
	guard  *redislock.Guard
	stamp  fence.Stamp // of the last grant, whatever became of that since
}

// open connects it. A process that stands still for a lease has to find its connection in order afterwards.
func (r *resource) open(addr string) (err error) {
	r.client, err = rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{addr}, DisableCache: true, ConnWriteTimeout: patience,
	})
	if err == nil {
		r.guard = redislock.NewGuard(r.client)
	}
	return err
}

// obey carries out one order.
func (r *resource) obey(ctx context.Context, o *order) *report {
	var err error
	done := &report{OK: true}
	switch o.Do {
	case "resource":
		err = r.open(o.URL)
	case "see":
		done.N, done.Fenced, err = r.see(ctx)
	case "sell":
		done.Seen, err = r.sell(ctx, strconv.Itoa(o.N))
	}
	if err != nil {
		return said(err)
	}
	return done
}

// see reads both numbers. The fence is asked at the first touch: it knows the new holder from here on.
func (r *resource) see(ctx context.Context) (plain, fenced int64, err error) {
	plain, err = r.client.Do(ctx, r.client.B().Get().Key(plainKey).Build()).AsInt64()
	if err != nil {
		return 0, 0, err
	}
	value, found, err := r.guard.Get(ctx, fencedKey, r.stamp)
	if err != nil {
		return 0, 0, err
	}
	if !found {
		return 0, 0, errors.New("the number is gone")
	}
	fenced, err = strconv.ParseInt(value, 10, 64)
	return plain, fenced, err
}

// sell writes both numbers, one right after the other. It returns the token that the fence has seen if that refused.
func (r *resource) sell(ctx context.Context, value string) (seen uint64, err error) {
	if err := r.client.Do(ctx, r.client.B().Set().Key(plainKey).Value(value).Build()).Error(); err != nil {
		return 0, err
	}
	err = r.guard.Set(ctx, fencedKey, value, r.stamp)
	var stale *fence.StaleError
	if errors.As(err, &stale) {
		return stale.Seen.Token, nil
	}
	return 0, err
}
