package worker

import (
	"context"
	"errors"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/torture/history"
)

// turn has a hold of a read-write lock change its mode, and holds on after that: an upgradeable read writes, and reads again;
// one writer in three reads on. One plain reader in three asks to write, which is refused.
func (h *hand) turn(ctx context.Context, lease *interlock.Lease, how history.Share) {
	switch {
	case how == history.Upgrades:
		if h.turnTo(ctx, lease, history.Writes, lease.Upgrade) && h.dice.IntN(2) == 0 {
			h.turnTo(ctx, lease, history.Upgrades, lease.Downgrade)
		}
	case h.dice.IntN(3) > 0:
	case how == history.Writes:
		h.turnTo(ctx, lease, history.Reads, lease.Downgrade)
	default:
		h.turnTo(ctx, lease, history.Writes, lease.Upgrade)
	}
}

// turnTo is one change of a mode, and the time after it. It reports whether there was one.
func (h *hand) turnTo(ctx context.Context, lease *interlock.Lease, to history.Share, turn func(context.Context) error) bool {
	e := history.Event{Proc: h.j.Proc, Gor: h.gor, Seq: h.seq, Op: history.Turn, Phase: history.Call, Name: lease.Name(), Share: to}
	h.log.Write(e)
	wait, cancel := h.patience(ctx)
	defer cancel()
	begun := time.Now()
	err := turn(wait)
	e.Took, e.Late = time.Since(begun), wait.late()
	stamp, _ := lease.Stamp()
	e.Phase, e.Token, e.Deadline, e.Stamp = history.OK, lease.Token(), history.At(lease.Deadline()), roleOf(stamp)
	if err != nil {
		e.Phase, e.Err = history.Fail, err.Error()
		// A downgrade may be done, and only the engine's word be missing that the write was given back.
		if errors.Is(err, interlock.ErrUnavailable) || to != history.Writes && stamp.Shared {
			e.Phase = history.Unknown
		}
	}
	h.log.Write(e)
	if lease.Err() == nil { // what was refused left it as it was
		h.stay(ctx, h.j.Hold, []*interlock.Lease{lease}, []*hand{h})
	}
	return err == nil
}
