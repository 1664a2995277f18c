package compare

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/interlock-go/interlock"
)

const (
	retainFor = time.Minute

	// rests is how long a lock is retained before its process is killed, and over how much more the moments of several
	// are spread: the client renews what it retains in such a time.
	rests, spread = 100 * time.Millisecond, 700 * time.Millisecond

	// patientFor is longer than the default lease, which a retained lock no longer has.
	patientFor = 40 * time.Second
)

// Retained kills so many processes, each of which retains a lock at that URL with the default lease, at different
// moments. It returns the longest time from a kill until another client got the lock, for which it asked at once.
func Retained(ctx context.Context, url string, processes int) (longest time.Duration, err error) {
	waits, errs := make([]time.Duration, processes), make([]error, processes)
	var all sync.WaitGroup
	for i := range processes {
		all.Go(func() {
			after := rests + spread*time.Duration(i)/time.Duration(processes)
			waits[i], errs[i] = killRetaining(ctx, url, fmt.Sprintf("retained-%d", i), after)
		})
	}
	all.Wait()
	return slices.Max(waits), errors.Join(errs...)
}

// killRetaining has one process retain a lock for a time, kills it, and returns how long another client then waits.
func killRetaining(ctx context.Context, url, name string, after time.Duration) (d time.Duration, err error) {
	other, err := interlock.Open(ctx, url, nil)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, other.Close()) }()
	h, err := hold(ctx, order{URL: url, Name: name, Retain: retainFor}, false)
	if err != nil {
		return 0, err
	}
	defer h.end()
	if err := pause(ctx, after); err != nil {
		return 0, err
	}
	if err := h.Signal(os.Kill); err != nil {
		return 0, err
	}
	at := time.Now()
	waiting, stop := context.WithTimeout(ctx, patientFor)
	defer stop()
	held, err := other.Lock(waiting, name)
	if err != nil {
		return 0, err
	}
	return time.Since(at), held.Unlock(ctx)
}
