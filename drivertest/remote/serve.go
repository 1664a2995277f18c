package remote

import (
	"context"
	"encoding/gob"
	"fmt"
	"os"
	"sync"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/drivertest/internal/optional"
)

// Main serves a driver and ends the process if this process was started by Open. Otherwise it returns at once. Call it
// first in TestMain:
//
//	func TestMain(m *testing.M) {
//		remote.Main(func(dir string) (driver.Driver, error) { return filelock.New(dir, nil) })
//		os.Exit(m.Run())
//	}
func Main(open func(arg string) (driver.Driver, error)) {
	arg, child := os.LookupEnv(env)
	if !child {
		return
	}
	out := os.Stdout
	os.Stdout = os.Stderr // what anybody prints must not come between the messages
	s := &server{out: gob.NewEncoder(out), cancels: make(map[int]context.CancelFunc)}
	d, err := open(arg)
	hello := &message{Op: opHello, Err: pack(err)}
	if err == nil {
		s.d = optional.Complete(d)
		hello.Traits, hello.Optional = d.Traits(), optional.Of(d)
	}
	s.send(hello)
	if err != nil {
		os.Exit(1)
	}
	in := gob.NewDecoder(os.Stdin)
	for {
		m := new(message)
		if err := in.Decode(m); err != nil {
			os.Exit(0) // the other end is gone; the holds end with this process
		}
		s.receive(m)
	}
}

// server is the child's end.
type server struct {
	d       optional.All
	sending sync.Mutex // guards out
	out     *gob.Encoder

	mu      sync.Mutex // guards cancels
	cancels map[int]context.CancelFunc
}

func (s *server) send(m *message) {
	s.sending.Lock()
	err := s.out.Encode(m)
	s.sending.Unlock()
	if err != nil { // the other end is gone
		fmt.Fprintln(os.Stderr, "remote:", err)
		os.Exit(1)
	}
}

// receive begins a call in a goroutine of its own, or ends its context.
func (s *server) receive(m *message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.Op == opCancel {
		if cancel := s.cancels[m.Call]; cancel != nil {
			cancel()
		}
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.cancels[m.Call] = cancel
	go func() { // ends with the call; the process does not wait for it
		answer := s.call(ctx, m)
		answer.Call, answer.Op = m.Call, opAnswer
		s.send(answer)
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.cancels, m.Call)
		cancel()
	}()
}

// call makes the call and returns what it answers.
func (s *server) call(ctx context.Context, m *message) *message {
	switch m.Op {
	case "acquire":
		return granted(s.d.Acquire(ctx, s.hearing(m)))
	case "requeue":
		return granted(s.d.Requeue(ctx, m.Release, s.hearing(m)))
	case "convert":
		return granted(s.d.Convert(ctx, m.Beside, s.hearing(m)))
	case "acquire all":
		return s.grantedAll(ctx, m)
	case "release":
		return failed(s.d.Release(ctx, m.Release))
	case "renew":
		s.d.Renew(ctx, m.Batch, func(i int, err error) {
			s.send(&message{Call: m.Call, Op: opRenewed, Index: i, Err: pack(err)})
		})
		return failed(nil)
	case "locks":
		answer := failed(nil)
		for info, err := range s.d.Locks(ctx, m.Prefix) {
			if err != nil {
				answer.Err = pack(err)
				break
			}
			answer.Locks = append(answer.Locks, info)
		}
		return answer
	case "break":
		return failed(s.d.Break(ctx, m.Key, m.Token))
	case "look":
		info, err := s.d.Look(ctx, m.Key)
		return &message{Locks: []driver.LockInfo{info}, Err: pack(err)}
	case "watch":
		return failed(s.d.Watch(ctx, m.Key, s.hints(m)))
	case "set latch":
		set, err := s.d.SetLatch(ctx, m.Latch)
		return &message{Set: set, Err: pack(err)}
	case "count down":
		left, err := s.d.CountDown(ctx, m.Latch)
		return &message{Count: left, Err: pack(err)}
	case "latch count":
		left, err := s.d.LatchCount(ctx, m.Key)
		return &message{Count: left, Err: pack(err)}
	case "cond wait":
		return granted(s.d.CondWait(ctx, m.Release, s.hearing(m), s.hints(m)))
	case "cond signal":
		return failed(s.d.CondSignal(ctx, m.Signal))
	case "diagnose":
		return &message{Findings: s.d.Diagnose(ctx)}
	case "close":
		return failed(s.d.Close())
	}
	return failed(fmt.Errorf("remote: unknown operation %q", m.Op))
}

// hints returns what tells the other end that something has happened.
func (s *server) hints(m *message) func() {
	return func() { s.send(&message{Call: m.Call, Op: opHint}) }
}

func failed(err error) *message { return &message{Err: pack(err)} }

func granted(g driver.Grant, err error) *message {
	g.Session = nil
	return &message{Grant: g, Err: pack(err)}
}

// grantedAll makes a call of several requests.
func (s *server) grantedAll(ctx context.Context, m *message) *message {
	for i, r := range m.All {
		r.Lost = func(reason driver.LostReason, cause error) {
			s.send(&message{Call: m.Call, Op: opLost, Index: i, Reason: reason, Err: pack(cause)})
		}
	}
	grants, err := s.d.AcquireAll(ctx, m.All)
	for i := range grants {
		grants[i].Session = nil
	}
	return &message{Grants: grants, Err: pack(err)}
}

// hearing is the request with callbacks that send messages.
func (s *server) hearing(m *message) *driver.Request {
	r := m.Request
	r.Waiting = func(held *driver.HeldError) {
		s.send(&message{Call: m.Call, Op: opWaiting, Err: pack(held)})
	}
	r.Lost = func(reason driver.LostReason, cause error) {
		s.send(&message{Call: m.Call, Op: opLost, Reason: reason, Err: pack(cause)})
	}
	return r
}
