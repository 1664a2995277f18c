package register

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/interlock-go/interlock/fence"
	"github.com/interlock-go/interlock/torture/history"
)

// Server is the register.
type Server struct {
	l     net.Listener
	conns sync.WaitGroup // one for each connection, and for the listener

	mu      sync.Mutex // guards what follows; the order in which it is taken is the order of the log
	log     *json.Encoder
	file    *os.File
	numbers map[number]int
	guard   fence.MemoryGuard
	latest  map[string]touched // by name: who touched it last
	updates int                // of fenced numbers
	enough  int                // when updates reaches it, reached is called
	reached func()
	delay   time.Duration
	dice    *rand.Rand
	heard   map[int]func(Ending) // by process: who hears what it announces
	open    map[net.Conn]struct{}
	closed  bool
	err     error // of the log
}

// touched is a process that touched a name, and since when no other has.
type touched struct {
	proc  int
	since time.Time
}

// number is one of the numbers.
type number struct {
	name   string
	fenced bool
}

// Listen starts a register that logs into dir, at an address of this machine.
func Listen(ctx context.Context, dir, host string, seed uint64) (*Server, error) {
	file, err := os.Create(filepath.Join(dir, LogFile))
	if err != nil {
		return nil, err
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	s := &Server{
		l: l, log: json.NewEncoder(file), file: file, numbers: make(map[number]int), latest: make(map[string]touched),
		dice: rand.New(rand.NewPCG(seed, 1)), open: make(map[net.Conn]struct{}),
		heard: make(map[int]func(Ending)),
	}
	s.conns.Go(s.accept)
	return s, nil
}

// Addr is where clients connect to.
func (s *Server) Addr() string { return s.l.Addr().String() }

// Latest returns the process that touched the name last, and false if none has.
func (s *Server) Latest(name string) (proc int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	latest, ok := s.latest[name]
	return latest.proc, ok
}

// Since returns since when the process that touched the name last is the only one that has.
func (s *Server) Since(name string) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.latest[name].since
}

// Delay makes each request take effect after up to d, as on a slow way to the resource: a write is then under way while
// its lock ends, with no process standing still.
func (s *Server) Delay(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.delay = d
}

// Await has reached called, once, when so many updates were made behind the fence.
func (s *Server) Await(updates int, reached func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.enough, s.reached = updates, reached
}

// Hear has f called with what the process announces, before that process goes on; nil ends that. It may be called by
// several goroutines at once.
func (s *Server) Hear(proc int, f func(Ending)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heard[proc] = f
}

// announced has an announcement heard, if anybody listens. It touches no number, and is under way for no time.
func (s *Server) announced(r *request) answer {
	s.mu.Lock()
	hear := s.heard[r.Proc]
	s.mu.Unlock()
	if hear != nil {
		hear(r.Ends)
	}
	return answer{}
}

// Close ends all connections and the log.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closed = true
	err := s.l.Close()
	for c := range s.open {
		_ = c.Close()
	}
	s.mu.Unlock()
	s.conns.Wait()
	return errors.Join(err, s.err, s.file.Close())
}

func (s *Server) accept() {
	for {
		c, err := s.l.Accept()
		if err != nil {
			return // closed
		}
		s.mu.Lock()
		if s.closed {
			s.mu.Unlock()
			_ = c.Close()
			return
		}
		s.open[c] = struct{}{}
		s.conns.Go(func() { s.serve(c) })
		s.mu.Unlock()
	}
}

func (s *Server) serve(c net.Conn) {
	defer func() {
		s.mu.Lock()
		delete(s.open, c)
		s.mu.Unlock()
		_ = c.Close()
	}()
	in, out := json.NewDecoder(bufio.NewReader(c)), json.NewEncoder(c)
	for {
		var r request
		if in.Decode(&r) != nil {
			return // the client has gone, perhaps in the middle of a line
		}
		var a answer
		if r.Ends != "" {
			a = s.announced(&r)
		} else {
			time.Sleep(s.underWay())
			a = s.do(&r.Entry)
		}
		if out.Encode(a) != nil {
			return
		}
	}
}

// underWay is how long this request still takes to arrive.
func (s *Server) underWay() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.delay <= 0 {
		return 0
	}
	return time.Duration(s.dice.Int64N(int64(s.delay)))
}

// do lets one request take effect.
func (s *Server) do(e *Entry) answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	e.At = history.Now()
	at := number{e.Name, e.Fenced}
	e.Before = s.numbers[at]
	var err error
	if e.Fenced {
		err = s.guard.Check(e.Name, fence.Stamp{Token: e.Token, Nonce: e.Nonce, Shared: e.Shared})
	}
	e.Stale = errors.Is(err, fence.ErrStale)
	if err != nil && !e.Stale {
		return answer{Err: err.Error()}
	}
	switch {
	case e.Stale:
	case e.Write:
		s.numbers[at] = e.Value
		if e.Fenced {
			s.count()
		}
	default:
		e.Value = e.Before
	}
	if !e.Stale {
		if latest, ok := s.latest[e.Name]; !ok || latest.proc != e.Proc {
			s.latest[e.Name] = touched{e.Proc, time.Now()}
		}
	}
	if err := s.log.Encode(e); err != nil && s.err == nil {
		s.err = err
	}
	return answer{Value: s.numbers[at], Stale: e.Stale}
}

// count counts an update behind the fence.
func (s *Server) count() {
	if s.updates++; s.updates >= s.enough && s.reached != nil {
		s.reached()
		s.reached = nil
	}
}
