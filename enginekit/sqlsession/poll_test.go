package sqlsession

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"net"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// A thousand clients whose connections a busy server does not open in time must not keep it busy with what they do
// instead.
func TestWait_OnAServerTooSlowToOpenAConnection_AsksLessAndLess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newBusy(t)
		const takes = 5 * time.Second
		var well atomic.Bool
		s.dials = func(ctx context.Context) error {
			if well.Load() {
				return nil
			}
			select {
			case <-time.After(takes): // virtual
				return context.DeadlineExceeded
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		got := s.begin()
		time.Sleep(time.Minute) // virtual
		tries, dials := s.tries.Load(), s.dialled.Load()
		const minutes = 4
		time.Sleep(minutes * time.Minute) // virtual
		tries, dials = s.tries.Load()-tries, s.dialled.Load()-dials
		if tries > 60*minutes || dials > 6*minutes {
			t.Errorf("in %d minutes it tried %d times and dialled %d times, want one and a tenth each second at most",
				minutes, tries, dials)
		}
		if tries == 0 || dials == 0 {
			t.Errorf("it tried %d times and dialled %d times: it has given up", tries, dials)
		}
		well.Store(true)
		time.Sleep(time.Minute) // virtual
		if err := <-got; err != nil || s.waited.Load() != 1 {
			t.Errorf("a server that has recovered: %v after %d waits on a connection of its own", err, s.waited.Load())
		}
	})
}

// Who waits for his turn to dial finds that the server takes too long. What fails side by side is one failure.
func TestWaits_OnAServerTooSlowToOpenConnections_DoNotDialOneAfterTheOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newBusy(t)
		s.core.config.Waits = 4 * mostDials
		var well atomic.Bool
		s.dials = func(ctx context.Context) error {
			if well.Load() {
				return nil
			}
			select {
			case <-time.After(5 * time.Second): // virtual
				return context.DeadlineExceeded
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		var all []<-chan error
		for i := range 4 * mostDials {
			all = append(all, s.beginFor(strconv.Itoa(i)))
		}
		time.Sleep(5*time.Second + time.Millisecond) // virtual
		synctest.Wait()
		s.core.mu.Lock()
		slow := s.core.pool.slow
		s.core.mu.Unlock()
		if dials := s.dialled.Load(); dials != mostDials || slow != 1 {
			t.Errorf("%d dialled, and the server was %d times in a row too slow, want %d at once and one", dials, slow,
				mostDials)
		}
		well.Store(true)
		for _, got := range all {
			if err := <-got; err != nil {
				t.Error(err)
			}
		}
	})
}

// A crowd asks a slow server as seldom as one alone, and no more seldom: when the server has recovered, or the lock is
// free, nothing else ends the pause.
func TestPollPause_OfACrowd_IsNoLongerThanOfOneOnASlowServer(t *testing.T) {
	for crowd := 1; crowd <= 1000; crowd *= 10 {
		for slow := range mostSlow + 1 {
			alone := 20 * time.Millisecond << (2 * slow)
			most := max(20*time.Millisecond<<(2*mostSlow), time.Duration(crowd)*2*time.Millisecond)
			if got := pollPause(crowd, slow); got < alone/2 || got > most+most/2 {
				t.Errorf("%d who poll pause for %v on a server that was %d times too slow, want %v to %v", crowd, got,
					slow, alone/2, most+most/2)
			}
		}
	}
}

// A server that refuses at once has no more connections to give, and all the time to answer.
func TestWait_OnAServerThatIsFull_AsksAsOftenAsEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newBusy(t)
		s.dials = func(context.Context) error { return errors.New("too many connections") }
		got := s.begin()
		time.Sleep(time.Minute) // virtual
		if tries := s.tries.Load(); tries < 60*25 {
			t.Errorf("it tried %d times in a minute, want about 50 each second", tries)
		}
		s.free.Store(true)
		if err := <-got; err != nil {
			t.Error(err)
		}
	})
}

// Who has no connection of its own and finds a shared one cut off has lost a turn, and not the wait.
func TestWait_OverASharedSessionThatWasCutOff_GoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newBusy(t)
		s.cutAt = 3
		s.dials = func(context.Context) error {
			if s.tries.Load() < s.cutAt {
				return errors.New("too many connections")
			}
			return nil
		}
		got := s.begin()
		time.Sleep(time.Minute) // virtual
		s.free.Store(true)
		if err := <-got; err != nil || s.tries.Load() < s.cutAt {
			t.Errorf("got %v after %d turns", err, s.tries.Load())
		}
	})
}

func TestAcquire_WhoseConnectionIsCutOffWhileItIsOpened_OpensAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newEmpty(t)
		s.free.Store(true)
		s.dials = func(context.Context) error {
			if s.dialled.Load() == 1 {
				return io.ErrUnexpectedEOF
			}
			return nil
		}
		if err := <-s.begin(); err != nil || s.dialled.Load() != 2 {
			t.Errorf("%v after %d attempts to open a connection", err, s.dialled.Load())
		}
	})
}

func TestAcquire_OnAServerThatLetsPeopleWait_OpensNoSecondConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newEmpty(t)
		s.dials = func(context.Context) error {
			time.Sleep(suspicion) // virtual
			return context.DeadlineExceeded
		}
		if err := <-s.begin(); !errors.Is(err, context.DeadlineExceeded) || s.dialled.Load() != 1 {
			t.Errorf("%v after %d attempts to open a connection", err, s.dialled.Load())
		}
	})
}

// The network is well again when the second comes, and only an attempt from before does not know.
func TestAcquire_WhileAConnectionIsOpenedInVain_HasAnAttemptOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newEmpty(t)
		s.free.Store(true)
		s.dials = func(context.Context) error {
			if s.dialled.Load() > 1 {
				return nil
			}
			time.Sleep(suspicion) // virtual
			return context.DeadlineExceeded
		}
		first := s.beginFor("x")
		time.Sleep(suspicion / 2) // virtual
		second := s.beginFor("y")
		if err := <-first; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the first, for whom the attempt was made: %v", err)
		}
		if err := <-second; err != nil || s.dialled.Load() != 2 {
			t.Errorf("the second: %v after %d attempts to open a connection", err, s.dialled.Load())
		}
	})
}

func TestAcquire_WhileAConnectionIsOpened_OnACoreThatCloses_IsErrClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newEmpty(t)
		s.dials = func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}
		got := s.begin()
		synctest.Wait()
		_ = s.core.Close() // it never fails
		if err := <-got; !errors.Is(err, driver.ErrClosed) {
			t.Errorf("got %v", err)
		}
	})
}

// A connection that has been given up is asked for nothing, also before it is gone from the list.
func TestAcquire_WhileAConnectionEnds_HasAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newEmpty(t)
		s.free.Store(true)
		s.dials = func(context.Context) error { return nil }
		given := make(chan *Conn)
		goOn := make(chan struct{})
		s.core.OnShared(Job{Run: func(c *Conn) { given <- c; <-goOn }, Dead: func(err error) { t.Error(err) }})
		(<-given).Kill()
		if err := <-s.begin(); err != nil || s.dialled.Load() != 2 {
			t.Errorf("%v after %d attempts to open a connection", err, s.dialled.Load())
		}
		close(goOn)
	})
}

// A server that takes long to answer may have let the request in: who undoes it waits until it is given back.
func TestUndo_WhileTheServerOwesTheAnswer_GivesBackWhatItSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newBusy(t)
		s.free.Store(true)
		s.asked, s.answers = make(chan *Conn), make(chan struct{})
		got := s.begin()
		c := <-s.asked
		s.core.mu.Lock()
		next := s.core.passBy(c) // as when it has owed the answer for longer than suspicion
		s.core.mu.Unlock()
		runAll(next)
		undone := make(chan error, 1)
		go func() { // ends with the give-back
			undone <- s.core.Release(s.t.Context(), &driver.Release{
				Key: driver.Key{Kind: driver.KindMutex, Name: "x"}, ID: "of x", Undo: true, Horizon: time.Minute,
			})
		}()
		if err := <-got; err == nil {
			t.Error("Acquire returned the lock although it was undone")
		}
		synctest.Wait()
		select {
		case err := <-undone:
			t.Errorf("the undo has ended before the answer: %v", err)
		default:
		}
		close(s.answers)
		if err := <-undone; err != nil || s.unlocked.Load() != 1 {
			t.Errorf("the undo: %v, given back %d times", err, s.unlocked.Load())
		}
	})
}

// A session that is cut off unnoticed has not been asked, and another is asked instead, but not for ever.
func TestAcquire_OverSessionsThatWereCutOff_AsksOthers_AFewTimes(t *testing.T) {
	const most = 1 + moreAsks // with one shared connection
	for _, row := range []struct {
		cuts, asks int32
		err        error
	}{{0, 1, nil}, {most - 1, most, nil}, {1000, most, driver.ErrUnavailable}} {
		synctest.Test(t, func(t *testing.T) {
			s := newEmpty(t)
			s.free.Store(true)
			s.dials = func(context.Context) error { return nil }
			s.cuts = row.cuts
			if err := <-s.begin(); !errors.Is(err, row.err) || s.tries.Load() != row.asks {
				t.Errorf("with %d sessions that are cut off: %v after %d of them were asked, want %v after %d",
					row.cuts, err, s.tries.Load(), row.err, row.asks)
			}
		})
	}
}

// busy is a server whose locks are held, with a core that asks it. Nothing of it is on a network.
type busy struct {
	Dialect // what is not asked for here
	Session
	t     *testing.T
	core  *Core
	dials func(ctx context.Context) error // what becomes of an attempt to open a connection
	cuts  int32                           // so many sessions are cut off before their first question arrives,
	cutAt int32                           // and one before this question

	asked   chan *Conn    // if there is one, a try says over which connection it is made,
	answers chan struct{} // and is answered when this is closed

	unlocked               atomic.Int32
	free                   atomic.Bool
	tries, dialled, waited atomic.Int32
}

func newBusy(t *testing.T) *busy {
	s := newEmpty(t)
	c, err := s.open(false)
	if err != nil {
		t.Fatal(err)
	}
	s.core.AddShared(c)
	return s
}

// newEmpty has no connection yet.
func newEmpty(t *testing.T) *busy {
	s := &busy{t: t}
	s.core = New(Config{
		Timeout: time.Hour, Shared: 1, Waits: 1, Quiet: time.Millisecond, Warn: func(string, string, error) {},
	}, s)
	t.Cleanup(func() { _ = s.core.Close() }) // it never fails
	return s
}

// begin asks for the lock and returns how that ends.
func (s *busy) begin() <-chan error { return s.beginFor("x") }

func (s *busy) beginFor(name string) <-chan error {
	got := make(chan error, 1)
	go func() { // ends with the grant
		_, err := s.core.Acquire(s.t.Context(), request(name))
		got <- err
	}()
	return got
}

func (s *busy) open(waits bool) (*Conn, error) {
	here, there := net.Pipe()
	s.t.Cleanup(func() { _ = there.Close() }) // likewise
	c := s.core.NewConn(here, waits, s)
	return c, s.core.Adopt(c, nil)
}

func (s *busy) Supports(*driver.Request) error    { return nil }
func (s *busy) LockOf(k driver.Key, _ int) LockID { return sha256.Sum256([]byte(k.Name)) }
func (s *busy) IsForGood(error) bool              { return false }
func (s *busy) LookAfter(*Entry) time.Duration    { return 0 }
func (s *busy) Advise(err error) error            { return err }
func (s *busy) Judge(error) (Meaning, string)     { return Unknown, "" }
func (s *busy) Look(e *Entry)                     { e.Seen(e.HeldBySomebody()) }
func (s *busy) Leave(*Entry) error                { return nil }
func (s *busy) Ping()                             {}
func (s *busy) Close()                            {}
func (s *busy) Prune()                            {}
func (s *busy) LookBeside(e *Entry, _ *Conn) bool { return false }
func (s *busy) Interrupt(*Conn) error             { return nil }
func (s *busy) Bury(*Conn) bool                   { return true }
func (s *busy) Unlock(*Entry) error               { s.unlocked.Add(1); return nil }
func (s *busy) Dial(ctx context.Context, waits bool) (*Conn, error) {
	s.dialled.Add(1)
	if err := s.dials(ctx); err != nil {
		return nil, err
	}
	return s.open(waits)
}

func (s *busy) Try(e *Entry) (Answer, error) {
	if n := s.tries.Add(1); n <= s.cuts || n == s.cutAt {
		e.c.Fail(io.EOF)
		return Answer{}, ErrUnasked
	}
	if s.asked != nil {
		s.asked <- e.c
		<-s.answers
	}
	return Answer{Granted: s.free.Load(), Token: 1, Tokens: 1}, nil
}

func (s *busy) Wait(*Entry) (Answer, error) {
	s.waited.Add(1)
	return Answer{Granted: true, Token: 1, Tokens: 1}, nil
}
