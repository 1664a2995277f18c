// Package sqlsession is an engine for SQL servers whose locks belong to a session and end with it, all but the
// statements: GET_LOCK of MySQL, advisory locks of PostgreSQL. Such a server lets a session in again that has the lock
// already, so every engine of this sort needs the same around its few statements, and it is here once:
//
//   - sessions that are pinned, give signs of life, and count as ended only when the server says so (Conn, bury);
//   - a few shared sessions that hold what was free when it was asked for, and a pool of others that wait (pool.go);
//   - a table of what each session has and asks for, which decides before the server is asked (lock_state.go);
//   - requests that are asked again, undone and released by their ID (Entry, release.go).
//
// What differs an engine says in a [Dialect] and, for each session, a [Session]: the statements, and what errors mean.
// It makes a [Core] of them, opens the first connection by its own Dialect.Dial, gives that to [Core.AddShared], and
// calls [Core.Start]. Its driver's Acquire, Release and Close are those of the Core.
//
// # Cost
//
// A lock that is free takes one round trip and its release another, over a shared connection. One that is held takes a
// connection of its own for the wait, up to Config.Waits; beyond that, a wait asks again about every 20 ms, in a crowd
// less often. A Core has one goroutine, each connection has one, and so has each wait.
package sqlsession

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// LockID is what an engine's server knows a lock by, in the engine's own form. It is comparable. The zero value has no
// special meaning.
type LockID [32]byte

// Config has the properties of a Core. No field has a default.
type Config struct {
	// Timeout is how long a session lasts without a sign of life; the engine has told the server so. The core closes a
	// connection whose answer is late by as much, and trusts a grant for this long from the last sign of life.
	Timeout time.Duration

	// Signs is the time between two signs of life of a connection, however busy it is. It must leave Timeout room
	// for several.
	Signs time.Duration

	Shared int // the largest number of connections that hold what was free; at least 1
	Waits  int // the largest number of connections that wait; at least 1

	// Quiet is how long a connection must have nothing to do before its socket is watched. Watching costs the next
	// statement some microseconds, which a busy connection is spared. A connection that is watched is not lent to
	// callers (see [Prompt]). A caller that borrows one may return that much later than its context ends. If Quiet is
	// shorter than the pauses between the statements of a connection that waits again and again, the process wakes up
	// in each of them.
	Quiet time.Duration

	// BreakPause is how long an operator's break may go unseen; at most a third of Timeout counts.
	BreakPause time.Duration

	// Recent is how old a [Core.Hint] may be to tell a caller that gives up that the lock is held, if nothing else says
	// so. 0 means never.
	Recent time.Duration

	// Warn reports what goes wrong and repairs itself: what it was, the name of the lock, and the error. It must not
	// block, and may be called by several goroutines at once.
	Warn func(what, lock string, err error)
}

// Dialect is what an engine does in its own way. Its methods may be called by several goroutines at once. No mutex is
// held during a call, unless the method's comment says so.
type Dialect interface {
	// Supports returns an error that matches driver.ErrUnsupported for a request that the engine does not understand.
	Supports(r *driver.Request) error

	// LockOf returns what the server knows the lock by. If that turns out to belong to another lock, the core asks for
	// probe 1, and so on. The answer must depend on nothing else, so that all clients find the same. It may be called
	// under a mutex, and must not block.
	LockOf(key driver.Key, probe int) LockID

	// Dial opens a session, sets it up, and has the core adopt it: [Core.NewConn], [Core.Adopt]. waits says that it is
	// for the pool of those that wait. It returns soon after ctx has ended. After an error the core uses nothing of the
	// session.
	Dial(ctx context.Context, waits bool) (*Conn, error)

	// IsForGood reports whether trying again does not help after this error of Dial. Then a wait that needs the
	// connection fails. Otherwise it asks for the lock again and again over a shared connection.
	IsForGood(err error) bool

	// LookAfter returns how long the wait of e goes on before Session.LookBeside is asked who is in the way; 0 means
	// never.
	LookAfter(e *Entry) time.Duration

	// Advise returns err with what to do about it, or err itself if nothing is known.
	Advise(err error) error

	// Judge returns what an error means to the caller, and for one that is Refused what to do about it, or "".
	Judge(err error) (Meaning, string)

	// ReadBreaks asks over the shared connection c, in its goroutine, which holds of these sessions operators want
	// broken, and calls Core.Break for each. holding is never empty.
	ReadBreaks(c *Conn, holding []*Conn)
}

// Session is what is said to one session of the server. All methods are called in the goroutine of its connection,
// except those that [Prompt] adds. A statement carries no caller's context, see [Conn]. The session announces each by
// [Conn.Sent] and reports its end by [Conn.Answered]. If something goes wrong so that nobody knows what the server has
// done, it ends the connection, by Conn.Fail or Conn.Answered. The error is then for people only, unless it matches
// ErrUnasked.
type Session interface {
	// Try takes the lock if it is free, and mints the token in the same step. After an error the session does not have
	// the lock, unless the error matches ErrUnsure: then the core calls Leave until it succeeds.
	Try(e *Entry) (Answer, error)

	// Wait waits for the lock for as long as one statement may, mints the token, and calls Entry.Seen if it learns who
	// is in the way. An answer that is neither granted nor foreign, without an error, says that the wait was
	// interrupted or lasted long enough: the core asks again. Whatever the session has then is given back by Leave.
	Wait(e *Entry) (Answer, error)

	// Unlock gives back what the session has, and ends the connection if the session does not have it. After any other
	// error the session may still have it, and the core calls Leave.
	Unlock(e *Entry) error

	// Leave gives back what the session may have. After an error it may still have it.
	Leave(e *Entry) error

	// Look calls Entry.Seen with who is in the way. The engine may ignore an error of the server: a try finds out.
	Look(e *Entry)

	// LookBeside is Look for a wait that goes on on another connection. It returns true if there is nothing to tell
	// yet.
	LookBeside(e *Entry, waits *Conn) (again bool)

	// Pin makes the row that keeps e from its number stay for ever. It reports whether there is such a row. See
	// ask.go.
	Pin(e *Entry) (pinned bool, err error)

	// Interrupt ends the statement that another session waits for. An error says that it may still do so later.
	Interrupt(other *Conn) error

	// Bury ends another session. It reports whether the server had ended it before.
	Bury(other *Conn) (buried bool)

	// Ping gives a sign of life. It calls Conn.Confirm only if the session itself has answered, and ends the connection
	// if another one has.
	Ping()

	// Prune looks at a bounded number of rows, about a thousand, and removes those that are not needed any more.
	Prune()

	// Close ends the session politely and frees what the client library has. The socket has a deadline by then.
	Close()
}

// Answer is what the server says about a request. The zero value refuses it.
type Answer struct {
	Granted bool   // the session has the lock now
	Token   uint64 // the first of the block
	Tokens  int    // how many tokens it has, at least 1 if granted

	Foreign bool              // the number belongs to another lock; see ask.go
	Held    *driver.HeldError // of a refused try: who is in the way; it must not be nil then
}
