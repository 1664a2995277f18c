package workload

import (
	"context"
	"errors"
	"runtime"
	"time"

	"github.com/interlock-go/interlock/bench/distance"
	"github.com/interlock-go/interlock/bench/engined"
	"github.com/interlock-go/interlock/bench/peer"
)

// gauge measures, while processes contend, what their server costs on processors, and what a Redis is sent. Without a
// server, and for the other kinds of jobs, of which the processes count themselves, it does nothing.
type gauge struct {
	job       *Job
	meter     *engined.Meter // nil without a Redis
	sent      traffic        // in the window
	server    []int          // its processes, if there is one and the system tells of their time on processors
	cpu       float64        // of it, as a part of one processor's time
	pinned    bool
	roundTrip float64
}

// openGauge also empties the server: what the peer before has left is nothing to this one.
func openGauge(ctx context.Context, spec *peer.Spec, j *Job) (*gauge, error) {
	g := &gauge{job: j, server: j.PIDs}
	if j.Redis == "" {
		return g, nil
	}
	var sent []string
	if spec != nil {
		sent = spec.Sends
	}
	g.meter = engined.NewMeter(j.Redis, sent)
	err := g.meter.Empty(ctx)
	if err == nil {
		_, err = g.meter.Count(ctx) // asks about commands, which takes longer than later
	}
	if err == nil {
		var pid int
		pid, err = g.meter.Process(ctx)
		g.server = []int{pid}
	}
	if err == nil && j.Apart {
		err = g.pin()
	}
	if err == nil && j.Far != "" && j.Kind != Turns { // that one does it itself
		g.roundTrip, err = distance.RoundTrip(ctx, j.Far)
	}
	if err != nil {
		g.close() // what failed says more
		return nil, err
	}
	return g, nil
}

// pin keeps the server on its processor until close.
func (g *gauge) pin() error {
	if runtime.NumCPU() < 2 {
		return errors.New("client and server cannot be apart on one processor")
	}
	g.pinned = true
	return pin(g.server[0], serverProcessor)
}

// measure counts in the window that begins then.
func (g *gauge) measure(ctx context.Context, begins time.Time) (err error) {
	if g.job.Kind != Contend || g.meter == nil && len(g.server) == 0 {
		return nil
	}
	time.Sleep(time.Until(begins))
	b := startCPUUsage(g.server)
	if g.meter == nil {
		time.Sleep(g.job.Time)
	} else {
		g.sent, err = rate(ctx, g.meter, g.job.Time)
	}
	_, g.cpu = b.shares()
	return err
}

func (g *gauge) close() {
	if g.pinned {
		_ = unpin(g.server[0]) // it was pinned, so it can be
	}
	if g.meter != nil {
		_ = g.meter.Close() // nothing was written
	}
}

// traffic is what clients have sent in a second.
type traffic struct {
	commands, pings float64
	scripts         float64 // nanoseconds that the server ran them
}

// rate counts for a time.
func rate(ctx context.Context, m *engined.Meter, d time.Duration) (t traffic, err error) {
	begin := time.Now()
	before, err := m.Count(ctx)
	if err != nil {
		return t, err
	}
	time.Sleep(d)
	after, err := m.Count(ctx)
	seconds := time.Since(begin).Seconds()
	sum := after.Sub(before)
	return traffic{
		commands: float64(sum.Commands) / seconds, pings: float64(sum.Pings) / seconds,
		scripts: float64(sum.Scripts) / seconds,
	}, err
}
