package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// patience is how long something may take that takes seconds on a machine with nothing else to do.
const patience = 90 * time.Second

// errNever says that something did not happen.
var errNever = errors.New("it did not happen")

// until looks at a condition until it holds. Prometheus tells nobody, so it has to be asked.
func until(ctx context.Context, what string, holds func(ctx context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("%w in %v", errNever, patience))
	defer cancel()
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	var last error
	for {
		ok, err := holds(ctx)
		if ok && err == nil {
			return nil
		}
		if ctx.Err() == nil { // otherwise it says only that the time is over
			last = err
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", what, errors.Join(context.Cause(ctx), last))
		}
	}
}

// fires waits until the alert fires, and tells how long after its cause that was.
func (s *show) fires(ctx context.Context, name string, since time.Time, cause string) error {
	var a alert
	err := until(ctx, name+" fires", func(ctx context.Context) (fires bool, err error) {
		a, fires, err = s.prom.firing(ctx, name)
		return fires, err
	})
	if err != nil {
		others, why := s.prom.alerts(ctx)
		return fmt.Errorf("%w; the alerts are %v", errors.Join(err, why), others)
	}
	s.say("ALERT %s fires, %v after %s: %q\n%10sSee %s", name, tenths(time.Since(since)), cause,
		a.Annotations["summary"], "", a.Annotations["runbook_url"])
	return nil
}

// resolves waits until the alert fires no more.
func (s *show) resolves(ctx context.Context, name string) error {
	err := until(ctx, name+" resolves", func(ctx context.Context) (bool, error) {
		_, fires, err := s.prom.firing(ctx, name)
		return !fires, err
	})
	if err == nil {
		s.say("%s has resolved", name)
	}
	return err
}

func tenths(d time.Duration) time.Duration { return d.Round(100 * time.Millisecond) }
