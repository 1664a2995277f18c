package compare

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/internal/childproc"
)

// holderRole is that of a process that a run starts to hold a lock, as an order says.
const holderRole = "compare holder"

// order is what a holder is to hold.
type order struct {
	URL   string
	Name  string
	Lease time.Duration

	Retain time.Duration // if not zero it gives the lock back, so that its client retains it for so long
}

// news is what a holder says: that it has the lock or retains it, and then that it has lost it.
type news struct {
	Err string `json:",omitempty"`
	At  int64  // by the wall clock, which all processes of a machine share, in nanoseconds
}

// ServeIfChild holds a lock and ends the process if a run has started it; otherwise it does nothing. A program that
// calls [Run] calls it first.
func ServeIfChild() {
	run, text, is := childproc.Serve(holderRole)
	if !is {
		return
	}
	go func() { // the run keeps its end open for as long as it wants the holder
		_ = run.Receive(new(news)) // it says nothing
		os.Exit(3)
	}()
	if err := serve(context.Background(), text, run); err != nil {
		_ = run.Send(news{Err: err.Error()}) // nobody may be there any more
		os.Exit(1)
	}
	select {} // the run ends the process
}

func serve(ctx context.Context, text string, run *childproc.Conn) error {
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	c, err := interlock.Open(ctx, o.URL, &interlock.Options{Lease: o.Lease, Retain: o.Retain})
	if err != nil {
		return err
	}
	held, err := c.Lock(ctx, o.Name)
	if err != nil {
		return err
	}
	if o.Retain > 0 {
		if err := held.Unlock(ctx); err != nil {
			return err
		}
	}
	if err := run.Send(news{At: time.Now().UnixNano()}); err != nil || o.Retain > 0 {
		return err
	}
	<-held.Lost()
	return run.Send(news{At: time.Now().UnixNano()})
}

// holder is such a process.
type holder struct {
	*childproc.Child
	news chan news // closed at the end of what it says
}

// hold starts a process, and returns when it has the lock, or at once if it is to wait for it.
func hold(ctx context.Context, o order, waits bool) (*holder, error) {
	text, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	cmd, err := childproc.Self(ctx, holderRole, string(text))
	if err != nil {
		return nil, err
	}
	child, err := childproc.Open(cmd, nil)
	if err != nil {
		return nil, err
	}
	h := &holder{Child: child, news: make(chan news, 2)}
	go func() { // ends with the process
		defer close(h.news)
		for {
			var n news
			if child.Receive(&n) != nil {
				return
			}
			h.news <- n
		}
	}()
	if waits {
		return h, nil
	}
	if _, err := h.next(startTime); err != nil {
		h.end()
		return nil, fmt.Errorf("a holder did not get its lock: %w", err)
	}
	return h, nil
}

// startTime bounds the start of a process and its first lock.
const startTime = 30 * time.Second

// errSilent says that a holder said nothing in time.
var errSilent = errors.New("it says nothing")

// next returns when the holder says the next thing.
func (h *holder) next(atMost time.Duration) (time.Time, error) {
	timer := time.NewTimer(atMost)
	defer timer.Stop()
	select {
	case n, ok := <-h.news:
		switch {
		case !ok:
			return time.Time{}, errors.New("it has ended")
		case n.Err != "":
			return time.Time{}, errors.New(n.Err)
		}
		return time.Unix(0, n.At), nil
	case <-timer.C:
		return time.Time{}, errSilent
	}
}

// end kills the process, also one that is stopped.
func (h *holder) end() {
	h.Kill()
	for range h.news {
	}
}
