// How the driver finds out that a pooler such as PgBouncer stands between it and the server, and whether that shares
// sessions. driver.go asks over its first connection, before any lock.

package pglock

import (
	"context"
	"errors"

	"github.com/interlock-go/interlock/driver"
)

// poolerAdvice is what to do about a pooler.
const poolerAdvice = "connect to the server itself, or through a pooler that keeps one session for each client " +
	"(pool_mode = session)"

// errShares is the refusal of a pooler that shares sessions among clients.
var errShares = errors.New("postgres: a pooler between here and the server gives one session to several clients in " +
	"turn: " +
	"an advisory lock belongs to a session, so two clients would hold one lock (" + poolerAdvice +
	", or set check to none at your own risk)")

// checkPooler finds out whether the server's sessions are our own, over a connection that is not set up yet. A server
// tells each client the number of the process that serves it, and a pooler tells a number of its own making: so if the
// number from the greeting is that of a statement, there is no pooler. Otherwise two connections show whether they
// share a session.
//
// It costs a round trip, and behind a pooler another connection and up to 16 round trips more. They can show that
// sessions are shared, and not that they never are.
func (d *Driver) checkPooler(ctx context.Context, a *speaker) (driver.Finding, error) {
	f := driver.Finding{Check: "pooler", Level: driver.LevelOK, Detail: "not looked for"}
	if d.opts.Check == CheckNone {
		return f, nil
	}
	pid, err := a.served(ctx)
	if err != nil {
		return f, err
	}
	if pid == int32(a.pg.PID()) {
		f.Detail = "none between here and the server"
		return f, nil
	}
	b, err := d.connect(ctx, false)
	if err != nil {
		return f, err
	}
	defer b.discard()
	shares, err := sharing(ctx, a, b, pid)
	switch {
	case err != nil:
		return f, err
	case shares:
		return f, errShares
	}
	return driver.Finding{
		Check: "pooler", Level: driver.LevelWarn,
		Detail: "there is one between here and the server; it seems to keep one session for each client, as locks " +
			"need it",
		Advice: poolerAdvice + "; a pooler needs room for all connections of all clients, and must not end those " +
			"that it thinks idle",
	}, nil
}

// sharingRounds is how often both connections are asked. Poolers give the session that was used last to the next who
// asks, so two rounds are enough for most.
const sharingRounds = 8

// sharing reports whether two connections are served by one session, or one connection by several. first is the process
// that has served a before.
func sharing(ctx context.Context, a, b *speaker, first int32) (bool, error) {
	var second int32
	for round := range sharingRounds {
		pidB, err := b.served(ctx)
		if err != nil {
			return false, err
		}
		pidA, err := a.served(ctx)
		if err != nil {
			return false, err
		}
		if round == 0 {
			second = pidB
		}
		if pidA != first || pidB != second || pidA == pidB {
			return true, nil
		}
	}
	return false, nil
}

// served returns the number of the process that serves this statement.
func (s *speaker) served(ctx context.Context) (int32, error) {
	answer := s.pg.ExecParams(ctx, "SELECT pg_backend_pid()", nil, nil, nil, binaryFormat).Read()
	if answer.Err != nil {
		return 0, answer.Err
	}
	if len(answer.Rows) != 1 {
		return 0, errSwapped
	}
	return int32Of(answer.Rows[0][0]), nil
}
