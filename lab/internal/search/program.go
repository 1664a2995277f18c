package search

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/interlock-go/interlock/lab/exhibit"
)

// Client is what a program runs on: a client on paper while the search looks for schedules, and a client of a real
// server, which stands still before each command, in a replay.
type Client interface {
	exhibit.Conn
	Name() string
	Now() time.Time // the client's own clock
	Leave()         // it has done what it wanted the lock for

	// Enter tells that the client believes to have the lock, until an instant of its own clock: one that looks at its
	// clock before it acts. The zero time is no end, as in all exhibits.
	Enter(until time.Time)
}

// Program is what one client does: it takes the lock with an exhibit's own code, works, and releases it. It ends at the
// first error.
type Program func(ctx context.Context, c Client) error

// errRefused ends the program of a client that did not get the lock.
var errRefused = errors.New("refused")

// work does what a client wants the lock for, if it was told that it has it.
func work(ctx context.Context, c Client, got bool, err error) error {
	switch {
	case err != nil:
		return err
	case !got:
		return errRefused
	}
	c.Enter(time.Time{})
	_, err = c.Do(ctx, "SET", goods, c.Name())
	c.Leave()
	return err
}

// answer is what a client was told by one command, and what its clock said when that was.
type answer struct {
	reply any
	err   error
	clock int64
}

// view is what a client is about to do, as its program says.
type view struct {
	next    []string // the command that it sends next; nil if its program has ended
	inside  bool
	until   int64 // by its clock; 0 for no end
	refused bool
	looked  uint64 // when it looked at its clock: bit 0 before the first answer, bit n after the n-th
}

// paper is a client on paper. It answers from the client's past, and stops the program where that ends.
type paper struct {
	name  string
	start int64 // what its clock said when it began
	past  []answer
	heard int // of its past
	view
}

var _ Client = (*paper)(nil)

// errParked stops a program at a command that was not answered yet.
var errParked = errors.New("not answered yet")

// errLost is what a client gets whose answer is lost.
var errLost = errors.New("the answer is lost")

// look runs a program up to the end of a client's past.
func look(ctx context.Context, program Program, p *paper) view {
	err := program(ctx, p)
	p.refused = errors.Is(err, errRefused)
	return p.view
}

// Name returns the client's name.
func (p *paper) Name() string { return p.name }

// Now is the clock as of the last answer: what follows it is done at once, and then the client stands still.
func (p *paper) Now() time.Time {
	if p.next == nil {
		p.looked |= 1 << p.heard
	}
	if p.heard == 0 {
		return time.UnixMilli(p.start)
	}
	return time.UnixMilli(p.past[p.heard-1].clock)
}

// Enter is undone by Leave. Whatever a program does after it was stopped does not count.
func (p *paper) Enter(until time.Time) {
	if p.next != nil {
		return
	}
	if p.inside, p.until = true, 0; !until.IsZero() {
		p.until = until.UnixMilli()
	}
}

// Leave ends what Enter began.
func (p *paper) Leave() {
	if p.next == nil {
		p.inside = false
	}
}

// Do answers from the past, or stops the program.
func (p *paper) Do(_ context.Context, args ...string) (any, error) {
	if p.heard < len(p.past) {
		a := p.past[p.heard]
		p.heard++
		return a.reply, a.err
	}
	if p.next == nil {
		p.next = slices.Clone(args)
	}
	return nil, errParked
}
