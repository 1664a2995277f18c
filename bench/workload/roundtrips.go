package workload

import (
	"context"
	"errors"

	"github.com/interlock-go/interlock/bench/peer"
	"github.com/interlock-go/interlock/bench/tap"
)

// countedLocks is of how many acquisitions the round trips are counted.
const countedLocks = 50

// roundTrips counts how often a peer asks the server and waits for one acquisition with its release that nobody
// disturbs. It is counted apart from the time, because what counts stands between client and server.
func roundTrips(ctx context.Context, peers []peer.Spec, name string, j *Job) (each float64, err error) {
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
	p, w, err := openOne(ctx, peers, name, "round-trips:"+name, at)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	return taps.Each(countedLocks, func() error {
		if err := w.Lock(ctx); err != nil {
			return err
		}
		return w.Unlock(ctx)
	})
}
