package compare

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/bench/engined"
	"github.com/interlock-go/interlock/bench/peer"
	"github.com/interlock-go/interlock/bench/stats"
	"github.com/interlock-go/interlock/bench/tap"
	"github.com/interlock-go/interlock/bench/workload"
)

const (
	// counted is how many refusals the round trips are counted of.
	counted = 20

	// handoffTimes is how much longer hand-offs are measured: there are few in a second.
	handoffTimes = 4
)

// speed measures what the workloads measure.
func (s *subject) speed(ctx context.Context, row *Row) error {
	j := workload.Job{Kind: workload.Serial, Peer: s.peer, Dir: s.dir, Time: s.Time, Warm: s.Time / 5}
	if s.engine == engined.Redis {
		j.Redis = s.addr()
	} else {
		j.Server = s.addr()
	}
	r, err := workload.Run(ctx, peer.All(), j)
	if err != nil {
		return err
	}
	row.Alone = Cell{Values: []float64{r.PerOp}}
	if s.engine == "mem" {
		row.Handoff = isNone("the lock is in the memory of one process")
		row.HandoffHi = row.Handoff
		return nil
	}
	j.Kind, j.Processes, j.Time = workload.Handoff, 2, s.Time*handoffTimes
	if r, err = workload.Run(ctx, peer.All(), j); err != nil {
		return err
	}
	row.Handoff = Cell{Values: []float64{stats.Quantile(r.Handoff.Latencies, 0.5)}}
	row.HandoffHi = Cell{Values: []float64{stats.Quantile(r.Handoff.Latencies, 0.99)}}
	return nil
}

// refusal measures tries at a lock that another client holds, and counts what they send through a tap.
func (s *subject) refusal(ctx context.Context, row *Row) (err error) {
	const name = "refusal"
	holder, err := s.open(ctx, s.addr(), 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, holder.Close()) }()
	held, err := holder.Lock(ctx, name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, held.Unlock(ctx)) }()
	other, err := s.open(ctx, s.addr(), 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, other.Close()) }()
	for begin := time.Now(); len(row.Refused.Values) < counted || time.Since(begin) < s.Time; {
		asked := time.Now()
		if err := refused(ctx, other, name); err != nil {
			return err
		}
		row.Refused.add(time.Since(asked))
	}
	if s.server == nil {
		row.RoundTrips = isNone("there is no server")
		return nil
	}
	return s.roundTrips(ctx, name, row)
}

// roundTrips counts how often a client sends something and waits for each refusal.
func (s *subject) roundTrips(ctx context.Context, name string, row *Row) (err error) {
	t, err := tap.New(s.addr())
	if err != nil {
		return err
	}
	defer t.Close()
	c, err := s.open(ctx, t.Addr(), 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	each, err := t.Each(counted, func() error { return refused(ctx, c, name) })
	row.RoundTrips = Cell{Values: []float64{each}}
	return err
}

// refused tries, and wants to be refused.
func refused(ctx context.Context, c *interlock.Client, name string) error {
	_, err := c.TryLock(ctx, name)
	if err == nil {
		return fmt.Errorf("a try at a held lock succeeded")
	}
	if !errors.Is(err, interlock.ErrHeld) {
		return err
	}
	return nil
}
