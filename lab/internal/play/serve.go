package play

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/internal/childproc"
	_ "github.com/interlock-go/interlock/mysqllock"         // mysql://
	_ "github.com/interlock-go/interlock/redislock"         // redis://
	_ "github.com/interlock-go/interlock/redislock/redlock" // redlock://
	_ "github.com/interlock-go/interlock/zklock"            // zk://
)

// role is what the program is started again for.
const role = "lab/play"

// ServeIfProcess plays a process of a play, if this process is one, and does not return then. Call it first in main and
// in TestMain: the processes are the program once more.
func ServeIfProcess() {
	director, name, is := childproc.Serve(role)
	if !is {
		return
	}
	_ = mysql.SetLogger(&mysql.NopLogger{}) // what it returns says as much
	s := &server{name: name, director: director, renewed: make(chan struct{}, 1)}
	for {
		var o order
		if director.Receive(&o) != nil {
			os.Exit(0) // the director is gone, and with it the play
		}
		s.send(s.obey(&o))
	}
}

// server is the side of a process that obeys.
type server struct {
	name    string
	locks   *interlock.Client
	lease   *interlock.Lease
	again   *interlock.Lease // of a re-entry
	renewed chan struct{}

	language    sync.Mutex // the lock of the language: one process long
	db          stock
	goods       resource
	transaction transaction
	consumer    consumer
	recipe      recipe

	director *childproc.Conn
}

func (s *server) send(r *report) {
	if s.director.Send(r) != nil {
		os.Exit(1) // the director is gone
	}
}

// ofHold are the orders that are about a hold.
var ofHold = []string{"again", "leave", "unlock", "err"}

// obey carries out one order. An error is in the report: the director judges it.
func (s *server) obey(o *order) *report {
	ctx := context.Background()
	if o.Wait > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(o.Wait)*time.Millisecond)
		defer cancel()
	}
	if s.lease == nil && slices.Contains(ofHold, o.Do) {
		return &report{Why: "it never had the lock"}
	}
	switch o.Do {
	case "open":
		return s.open(ctx, o)
	case "lock", "try":
		return s.lock(ctx, o)
	case "again":
		return s.reenter(ctx, o)
	case "leave":
		return said(s.again.Unlock(ctx))
	case "unlock":
		return said(s.lease.Unlock(ctx))
	case "err":
		return said(s.lease.Err())
	case "renewals":
		for range o.N {
			<-s.renewed
		}
		return &report{OK: true}
	case "mutex":
		got := make(chan bool)
		go func() { got <- s.language.TryLock() }() // another goroutine each time, as the story says
		return &report{OK: <-got}
	case "unmutex":
		s.language.Unlock()
		return &report{OK: true}
	case "begin", "hold", "count", "insert", "commit", "rollback":
		return s.transact(ctx, o)
	case "resource", "see", "sell":
		return s.goods.obey(ctx, o)
	case "session", "enter", "node", "exit":
		return s.followRecipe(ctx, o)
	case "queue", "take", "book", "acknowledge", "drain":
		return s.consume(ctx, o)
	default:
		return s.db.obey(ctx, o)
	}
}

func (s *server) open(ctx context.Context, o *order) *report {
	var err error
	s.locks, err = interlock.Open(ctx, o.URL, &interlock.Options{
		ClientName: s.name, Lease: time.Duration(o.Lease) * time.Millisecond,
		Observer: &interlock.Observer{Renewed: func(interlock.Event) {
			select {
			case s.renewed <- struct{}{}:
			default: // nobody counts
			}
			s.send(&report{Renewed: true})
		}},
	})
	return said(err)
}

func (s *server) lock(ctx context.Context, o *order) *report {
	take := s.locks.Lock
	if o.Do == "try" {
		take = s.locks.TryLock
	}
	l, err := take(ctx, o.Name)
	if err != nil {
		return said(err)
	}
	s.lease = l
	s.goods.stamp, _ = l.Stamp() // none for a hold that has ended already, which the director will be told
	go func() {                  // ends with the hold, or with the process
		<-l.Context(context.Background()).Done()
		if errors.Is(l.Err(), interlock.ErrLost) {
			s.send(&report{Lost: true})
		}
	}()
	return granted(l)
}

// reenter takes the lock that is held once more, as code does that is called under it.
func (s *server) reenter(ctx context.Context, o *order) *report {
	l, err := s.locks.Lock(s.lease.Context(ctx), o.Name)
	if err != nil {
		return said(err)
	}
	s.again = l
	return granted(l)
}

func granted(l *interlock.Lease) *report {
	stamp, _ := l.Stamp() // none for a hold that has ended already, which the director will be told
	return &report{OK: true, Token: l.Token(), Nonce: stamp.Nonce}
}

// said puts an error into the one word that a story needs.
func said(err error) *report {
	switch {
	case err == nil:
		return &report{OK: true}
	case errors.Is(err, interlock.ErrHeld):
		return &report{Why: "held"}
	case errors.Is(err, interlock.ErrLost):
		return &report{Why: "lost"}
	case errors.Is(err, interlock.ErrReleased):
		return &report{Why: "released"}
	case errors.Is(err, interlock.ErrUnavailable):
		return &report{Why: "unavailable"}
	case errors.Is(err, context.DeadlineExceeded):
		return &report{Why: "deadline"}
	default:
		return &report{Why: fmt.Sprint(err)}
	}
}
