package workload

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/interlock-go/interlock/bench/peer"
	"github.com/interlock-go/interlock/internal/childproc"
)

// longest is how long a measurement may take beyond its time: an hour of nothing on a build machine is worse than no
// result.
const longest = 3 * time.Minute

// eachHold is how much longer it may take for each lock that must be held: it is taken and given back.
const eachHold = 500 * time.Microsecond

// Run does one measurement in processes of its own and returns when all of them have ended. When ctx ends they are
// killed.
func Run(ctx context.Context, peers []peer.Spec, j Job) (r Result, err error) {
	var spec *peer.Spec
	if j.Kind != Turns {
		if spec, err = find(peers, j.Peer); err == nil {
			err = j.check(spec)
		}
		if err != nil {
			return r, err
		}
	}
	j.Processes = max(j.Processes, 1)
	if j.Dir, err = os.MkdirTemp(j.Dir, "interlock-bench-"); err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(j.Dir)) }()
	w, err := openWitness(witnessPath(j.Dir))
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	most := longest + time.Duration(max(len(j.Peers), 1))*j.Time + time.Duration(j.Locks)*eachHold
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	g, err := openGauge(ctx, spec, &j)
	if err != nil {
		return r, err
	}
	defer g.close()
	j.PIDs = g.server
	parts, err := together(ctx, &j, g)
	if err != nil {
		return r, fmt.Errorf("%s of %s%s: %w", j.Kind, j.Peer, strings.Join(j.Peers, ", "), errors.Join(err, ctx.Err()))
	}
	r, err = merge(parts, w.seen(), &j)
	if r.Rate > 0 {
		r.Commands, r.Scripts = g.sent.commands/r.Rate, g.sent.scripts/r.Rate
		r.ServerCPU = g.cpu * float64(time.Second) / r.Rate
	}
	if r.RoundTrip == 0 {
		r.RoundTrip = g.roundTrip
	}
	return r, err
}

// together starts the processes, lets them begin at one instant, lets g count, collects what they return, and then ends
// them.
func together(ctx context.Context, j *Job, g *gauge) (parts []*part, err error) {
	ctx, cancel := context.WithCancel(ctx)
	var children []*childproc.Child
	defer func() {
		if err != nil {
			cancel() // kills them, so that the waits below end
		}
		for _, c := range children {
			if waitErr := c.Wait(); err == nil && waitErr != nil {
				err = waitErr
			}
		}
		cancel()
	}()
	for i := range j.Processes {
		own := *j
		own.Index = i
		c, err := start(ctx, &own)
		if err != nil {
			return nil, err
		}
		children = append(children, c)
	}
	for _, c := range children { // each has opened its peer
		if _, err := receive(c); err != nil {
			return nil, err
		}
	}
	begins := time.Now().Add(j.Warm)
	for _, c := range children {
		if err := c.Send(begin{At: begins.UnixNano()}); err != nil {
			return nil, err
		}
	}
	if err := g.measure(ctx, begins); err != nil {
		return nil, err
	}
	for _, c := range children {
		p, err := receive(c)
		if err != nil {
			return nil, err
		}
		parts = append(parts, p)
	}
	for _, c := range children {
		if err := c.Send(end{}); err != nil {
			return nil, err
		}
	}
	return parts, nil
}

// start starts a process for a job. It lives as long as its input is open, which Wait closes when it has ended.
func start(ctx context.Context, j *Job) (*childproc.Child, error) {
	cmd, err := childproc.Self(ctx, role, "")
	if err != nil {
		return nil, err
	}
	c, err := childproc.Open(cmd, nil)
	if err != nil {
		return nil, err
	}
	// A child that ends before it has read this says why in its reply, or by its exit.
	_ = c.Send(j)
	return c, nil
}

// receive waits for a process's next message.
func receive(c *childproc.Child) (*part, error) {
	var r reply
	if err := c.Receive(&r); err != nil {
		return nil, fmt.Errorf("a worker did not answer: %w", err)
	}
	if r.Err != "" {
		return nil, errors.New(r.Err)
	}
	return r.Part, nil
}

// merge makes one result of what the processes returned. seen is how many steps the witness has counted.
func merge(parts []*part, seen int64, j *Job) (Result, error) {
	r := Result{PerOp: parts[0].PerOp, Keep: parts[0].Keep, Turns: parts[0].Turns, RoundTrip: parts[0].RoundTrip}
	var all, counted int64
	for _, p := range parts {
		var sum int64
		for _, n := range p.Counts {
			sum += n
			if len(parts) == 1 {
				r.Shares = append(r.Shares, float64(n))
			}
		}
		if len(parts) > 1 {
			r.Shares = append(r.Shares, float64(sum))
		}
		if p.Seconds > 0 {
			r.Rate += float64(sum) / p.Seconds
		}
		r.Wait.Merge(&p.Wait)
		r.Cut += p.Cut
		r.CPU += p.CPU
		all += p.All
		counted += sum
	}
	if counted > 0 {
		r.CPU /= float64(counted)
	}
	r.mergeHandoff(parts)
	r.mergeHerd(parts, j.Limit)
	if !j.Distinct && j.Sharing == peer.Nobody && all != seen {
		return r, fmt.Errorf("%w: of %d steps inside, %d were lost", ErrOverlap, all, all-seen)
	}
	return r, nil
}

// mergeHandoff puts the two parts together. The first process has listened.
func (r *Result) mergeHandoff(parts []*part) {
	if parts[0].Handoff == nil {
		return
	}
	sum := *parts[0].Handoff
	for _, p := range parts[1:] {
		sum.Latencies = append(sum.Latencies, p.Handoff.Latencies...)
		sum.Hung += p.Handoff.Hung
	}
	r.Handoff = &sum
}

// mergeHerd puts the parts together. The first process has led.
func (r *Result) mergeHerd(parts []*part, limit time.Duration) {
	if parts[0].Herd == nil {
		return
	}
	sum := parts[0].Herd.HerdResult
	last := parts[0].Herd.Last
	for _, p := range parts[1:] {
		last = max(last, p.Herd.Last)
		sum.Unserved += p.Herd.Unserved
	}
	sum.Total = float64(last - parts[0].Herd.Released)
	if sum.Unserved > 0 {
		sum.Total = float64(limit) // it would have been more
	}
	r.Herd = &sum
}
