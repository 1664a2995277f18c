package workload

import (
	"context"
	"errors"

	"github.com/interlock-go/interlock/bench/peer"
	"github.com/interlock-go/interlock/bench/tap"
)

// countedTrips is how many acquisitions are counted: clients also say now and then that they live.
const countedTrips = 50

// trips counts how often a peer asks the server and waits for one acquisition with its release that nobody disturbs. It is counted
// apart from the time, because what counts stands between client and server.
func trips(ctx context.Context, peers []peer.Spec, name string, j *Job) (each float64, err error) {
	at := j.place()
	addr := &at.Server
	if j.Redis != "" {
		addr = &at.Redis
	}
	if *addr == "" || j.Far != "" {
		return 0, nil
	}
	taps, err := tap.New(*addr)
	if err != nil {
		return 0, err
	}
	defer taps.Close()
	*addr = taps.Addr()
	spec, err := find(peers, name)
	if err != nil {
		return 0, err
	}
	p, err := spec.Open(ctx, at)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	if p, err = onItsOwn(p, name, "trips:"+name); err != nil {
		return 0, err
	}
	w, err := p.Worker()
	if err != nil {
		return 0, err
	}
	if err := again(ctx, w, 5); err != nil { // opens connections and loads what is loaded once
		return 0, err
	}
	asked, err := taps.TurnsIn(func() error { return again(ctx, w, countedTrips) })
	return float64(asked) / countedTrips, err
}

// again takes and releases a lock several times.
func again(ctx context.Context, w peer.Worker, times int) error {
	for range times {
		if err := w.Lock(ctx); err != nil {
			return err
		}
		if err := w.Unlock(ctx); err != nil {
			return err
		}
	}
	return nil
}
