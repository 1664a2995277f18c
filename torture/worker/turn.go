package worker

import (
	"context"
	"errors"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/torture/history"
	"github.com/interlock-go/interlock/torture/register"
)

// turn has a hold of a read-write lock change its mode, and holds on after that: an upgradeable read writes, and reads
// again; one writer in three reads on. One plain reader in three asks to write, which is refused.
func (w *worker) turn(ctx context.Context, lease *interlock.Lease, how history.Share) {
	switch {
	case how == history.Upgrades:
		if w.turnTo(ctx, lease, history.Writes, lease.Upgrade) && w.dice.IntN(2) == 0 {
			w.turnTo(ctx, lease, history.Upgrades, lease.Downgrade)
		}
	case w.dice.IntN(3) > 0:
	case how == history.Writes:
		w.turnTo(ctx, lease, history.Reads, lease.Downgrade)
	default:
		w.turnTo(ctx, lease, history.Writes, lease.Upgrade)
	}
}

// turnTo is one change of a mode, and the time after it. It reports whether there was one.
func (w *worker) turnTo(
	ctx context.Context, lease *interlock.Lease, to history.Share, turn func(context.Context) error,
) bool {
	e := history.Event{
		Proc: w.j.Proc, Gor: w.gor, Seq: w.seq, Op: history.Turn, Phase: history.Call, Name: lease.Name(), Share: to,
		Deadline: history.At(lease.Deadline()),
	}
	w.announce(register.Converts)
	w.log.Write(e)
	wait, cancel := w.patience(ctx)
	begun := time.Now()
	err := turn(wait)
	e.Took, e.Late = time.Since(begun), wait.late()
	cancel()
	stamp, _ := lease.Stamp()
	e.Phase, e.Token, e.Deadline, e.Stamp = history.OK, lease.Token(), history.At(lease.Deadline()), roleOf(stamp)
	if err != nil {
		e.Phase, e.Err, e.Reason = history.Fail, err.Error(), reasonOf(err, e.Name)
		// A downgrade may be done, and only the engine's word be missing that the write was given back.
		if errors.Is(err, interlock.ErrUnavailable) || to != history.Writes && stamp.Shared {
			e.Phase = history.Unknown
		}
	}
	w.log.Write(e)
	if lease.Err() == nil { // what was refused left it as it was
		w.stay(ctx, w.j.Hold, []*interlock.Lease{lease}, []*worker{w})
	}
	return err == nil
}
