package remote

import (
	"context"

	"github.com/interlock-go/interlock/driver"
)

// The calls that the child makes, by the name of the operation. serve.go receives them.

// methods are what can be asked of the child.
var methods = map[string]func(s *server, ctx context.Context, m *message) *message{
	"acquire":     (*server).acquire,
	"requeue":     (*server).requeue,
	"convert":     (*server).convert,
	"acquire all": (*server).acquireAll,
	"adopt":       (*server).adopt,
	"resize":      (*server).resize,
	"release":     (*server).release,
	"renew":       (*server).renew,
	"locks":       (*server).locks,
	"break":       (*server).breakHold,
	"look":        (*server).look,
	"watch":       (*server).watch,
	"set latch":   (*server).setLatch,
	"count down":  (*server).countDown,
	"latch count": (*server).latchCount,
	"cond wait":   (*server).condWait,
	"cond signal": (*server).condSignal,
	"diagnose":    (*server).diagnose,
	"close":       (*server).leave,
}

func (s *server) acquire(ctx context.Context, m *message) *message {
	return granted(s.d.Acquire(ctx, s.request(m)))
}

func (s *server) requeue(ctx context.Context, m *message) *message {
	return granted(s.d.Requeue(ctx, m.Release, s.request(m)))
}

func (s *server) convert(ctx context.Context, m *message) *message {
	return granted(s.d.Convert(ctx, m.Beside, s.request(m)))
}

func (s *server) adopt(ctx context.Context, m *message) *message {
	return granted(s.d.Adopt(ctx, m.Beside, s.request(m)))
}

func (s *server) resize(ctx context.Context, m *message) *message {
	return failed(s.d.Resize(ctx, m.Key, m.Limit))
}

func (s *server) release(ctx context.Context, m *message) *message {
	return failed(s.d.Release(ctx, m.Release))
}

func (s *server) breakHold(ctx context.Context, m *message) *message {
	return failed(s.d.Break(ctx, m.Key, m.Token))
}

func (s *server) watch(ctx context.Context, m *message) *message {
	return failed(s.d.Watch(ctx, m.Key, s.hints(m)))
}

func (s *server) countDown(ctx context.Context, m *message) *message {
	return counted(s.d.CountDown(ctx, m.Latch))
}

func (s *server) latchCount(ctx context.Context, m *message) *message {
	return counted(s.d.LatchCount(ctx, m.Key))
}

func (s *server) condSignal(ctx context.Context, m *message) *message {
	return failed(s.d.CondSignal(ctx, m.Signal))
}

func (s *server) diagnose(ctx context.Context, _ *message) *message {
	return &message{Findings: s.d.Diagnose(ctx)}
}

func (s *server) leave(_ context.Context, _ *message) *message {
	return failed(s.d.Close())
}

func (s *server) acquireAll(ctx context.Context, m *message) *message {
	for i, r := range m.All {
		r.Lost, r.Wanted = s.lost(m, i), s.wanted(m, i)
	}
	grants, err := s.d.AcquireAll(ctx, m.All)
	for i := range grants {
		grants[i].Session = nil
	}
	return &message{Grants: grants, Err: pack(err)}
}

func (s *server) renew(ctx context.Context, m *message) *message {
	s.d.Renew(ctx, m.Batch, func(i int, err error) {
		s.send(&message{Call: m.Call, Op: opRenewed, Index: i, Err: pack(err)})
	})
	return failed(nil)
}

func (s *server) locks(ctx context.Context, m *message) *message {
	answer := failed(nil)
	for info, err := range s.d.Locks(ctx, m.Prefix) {
		if err != nil {
			answer.Err = pack(err)
			break
		}
		answer.Locks = append(answer.Locks, info)
	}
	return answer
}

func (s *server) look(ctx context.Context, m *message) *message {
	info, err := s.d.Look(ctx, m.Key)
	return &message{Locks: []driver.LockInfo{info}, Err: pack(err)}
}

func (s *server) setLatch(ctx context.Context, m *message) *message {
	set, err := s.d.SetLatch(ctx, m.Latch)
	return &message{Set: set, Err: pack(err)}
}

func (s *server) condWait(ctx context.Context, m *message) *message {
	return granted(s.d.CondWait(ctx, m.Release, s.request(m), s.hints(m)))
}

// failed is the answer of a call without a value.
func failed(err error) *message { return &message{Err: pack(err)} }

// granted is the answer with a grant. A session cannot be seen from another process.
func granted(g driver.Grant, err error) *message {
	g.Session = nil
	return &message{Grant: g, Err: pack(err)}
}

// counted is the answer with a count.
func counted(left int64, err error) *message { return &message{Count: left, Err: pack(err)} }
