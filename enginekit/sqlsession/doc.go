// Package sqlsession is what the drivers of SQL servers share. Their locks belong to a session of the server and end with it
// (GET_LOCK of MySQL, advisory locks of PostgreSQL), and let the session that has one in again. So they all need the same
// around their few statements, and it is here once:
//
//   - sessions that are pinned, give signs of life, and are known to be over only when the server says so (Conn, bury.go);
//   - a few shared sessions that hold what was free when it was asked for, and a pool of others that wait (shared.go, pool.go);
//   - a table of what each session has and asks for, which decides before the server is asked (place.go);
//   - requests that are asked again, undone and released by their ID (Entry, release.go, giveback.go, tombstones.go).
//
// What differs is said by an engine's [Dialect] and, for each session, its [Session]: the statements, and what errors mean.
package sqlsession

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// LockID is what an engine's server knows a lock by, in the engine's own form.
type LockID [32]byte

// Config are the properties of a driver. None has a default.
type Config struct {
	Timeout time.Duration // how long a session lasts without a sign of life
	Signs   time.Duration // how long a connection that has nothing to do gives none
	Shared  int           // connections that hold what was free
	Waits   int           // connections that wait

	// Quiet is how long a connection must have nothing to do before its socket is watched. Watching costs the next statement
	// some microseconds, which a busy connection is spared. One that is watched is not lent, and who has one may leave so much later than
	// his context ends. If it is shorter than the pauses between the statements of a connection that waits again and again, the process
	// wakes up in each of them.
	Quiet time.Duration

	// BreakPause is how long an operator's break may go unseen.
	BreakPause time.Duration

	// Recent is for how long a caller who gives up is told that the lock is held if Core.Hint is all that says so. 0 is never.
	Recent time.Duration

	Warn func(what, lock string, err error) // tells people; it does not block
}

// Dialect is what an engine does in its own way.
type Dialect interface {
	// Supports refuses requests that the engine does not understand.
	Supports(r *driver.Request) error

	// LockOf is what the server knows the lock by. If the number belongs to another lock already, the next probe is asked for.
	LockOf(key driver.Key, probe int) LockID

	// Dial opens a session, sets it up and has the core adopt it. waits says that it is to wait.
	Dial(ctx context.Context, waits bool) (*Conn, error)

	// IsForGood says of an error of Dial that a wait which cannot have a connection fails, instead of asking again and again.
	IsForGood(err error) bool

	// LookAfter is how long the wait of e goes on before Session.LookBeside; 0 is for ever.
	LookAfter(e *Entry) time.Duration

	// Advise adds to an error what to do about it.
	Advise(err error) error

	// Judge says what an error means to the caller, and what to do about it if that is known.
	Judge(err error) (Meaning, string)

	// ReadBreaks asks, over a shared connection, what operators want of the sessions that hold something, and calls Core.Break
	// for each. It does not block.
	ReadBreaks(holding []*Conn)
}

// Session is what is said to one session of the server. All is called in the goroutine of its connection, except what [Prompt] adds.
// Whatever goes wrong so that nobody knows what the server has done ends the connection, by Conn.Break or Conn.Answered; the error then
// matters to people alone, unless it matches ErrUnasked.
type Session interface {
	// Try takes the lock if it is free, and mints the token in the same step. After an error the session has not got it, unless the error
	// matches ErrUnsure: then Leave is asked until it says so.
	Try(e *Entry) (Answer, error)

	// Wait waits for the lock for as long as one statement may, mints the token, and calls Entry.Seen if it learns who is in the way.
	// An answer that is neither granted nor foreign, without an error, is for a wait that was interrupted or lasted long enough: it
	// is asked again. Whatever the session has then is given back by Leave.
	Wait(e *Entry) (Answer, error)

	// Unlock gives back what the session has, and ends the connection if that has not got it. After any other error the session may have
	// it still, and Leave is asked.
	Unlock(e *Entry) error

	// Leave gives back what the session may have. After an error it may have it still.
	Leave(e *Entry) error

	// Look calls Entry.Seen with who is in the way.
	Look(e *Entry)

	// LookBeside is Look for a wait that goes on on another connection. It reports that there is nothing to tell yet.
	LookBeside(e *Entry, waits *Conn) (again bool)

	// Pin makes the row stay for ever that keeps e from the number that it was to have. It reports whether there is one.
	Pin(e *Entry) (pinned bool, err error)

	// Interrupt ends the statement that another session waits for. An error says that it may do so later.
	Interrupt(other *Conn) error

	// Bury ends another session, and reports whether the server had ended it before.
	Bury(other *Conn) (buried bool)

	// Ping is a sign of life.
	Ping()

	// Prune looks at a bounded number of rows, about a thousand, and removes those that nobody needs any more.
	Prune()

	// Close says goodbye and gives back what the client library has. The socket has a deadline.
	Close()
}

// Answer is what the server says about a request.
type Answer struct {
	Granted bool
	Token   uint64 // the first
	Tokens  int

	Foreign bool              // the number belongs to another lock
	Held    *driver.HeldError // of a try that was refused: who is in the way
}
