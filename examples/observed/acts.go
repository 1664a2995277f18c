package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock"
)

// play plays all acts, and counts at the end.
func (s *show) play(ctx context.Context) error {
	if err := s.awaitScrapes(ctx); err != nil {
		return err
	}
	s.begin = time.Now()
	fmt.Fprintf(s.out, "%d shops with %d customers each, one lock for the market; a clerk who holds the ledger's; each lease is %v.\n"+
		"Prometheus at http://%s scrapes them every %v, and has %s with a second for each minute.\n\n",
		s.shops, s.crowd, lease, s.prom.addr, scrapes, alertFile)
	for _, act := range []func(context.Context) error{s.morning, s.cutAndMend, s.stopAndGoOn, s.evening} {
		if err := act(ctx); err != nil {
			return err
		}
	}
	s.tracing.print(s.out, annsOrder)
	return nil
}

// awaitScrapes waits until Prometheus knows everybody, which takes it five seconds.
func (s *show) awaitScrapes(ctx context.Context) error {
	return until(ctx, "everybody is scraped", func(ctx context.Context) (bool, error) {
		n, err := s.prom.value(ctx, "up")
		return int(n) == s.shops+1, err
	})
}

// morning waits until the clerk has renewed twice while it was watched: from then on there is nearly a third of a lease until
// the next renewal.
func (s *show) morning(ctx context.Context) error {
	const renewals = `interlock_renewals_total{class="ledger",result="ok"}`
	before, err := s.prom.value(ctx, renewals)
	if err != nil {
		return err
	}
	err = until(ctx, "the clerk renews", func(ctx context.Context) (bool, error) {
		n, err := s.prom.value(ctx, renewals)
		return n >= before+2, err
	})
	if err != nil {
		return err
	}
	rate, err := s.prom.value(ctx, `sum(rate(interlock_hold_duration_seconds_count{class="market"}[5s]))`)
	if err != nil {
		return err
	}
	if a, fires, err := s.prom.firing(ctx, ""); fires || err != nil {
		return fmt.Errorf("nothing has happened, and %s fires: %w", a.Labels["alertname"], errors.Join(err, errUnexpected))
	}
	s.say("everybody trades, %.0f times a second; no alert fires", rate)
	return nil
}

// errUnexpected says that something happened that was not to.
var errUnexpected = errors.New("that was not to happen")

// cutAndMend cuts the clerk's link for less than a lease.
func (s *show) cutAndMend(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cut := s.mark("link cut")
	s.say("the link between the clerk and Redis is cut")
	s.link.Refuse()
	s.link.Reset()
	mended := make(chan error, 1)
	go func() { mended <- s.mend(ctx) }()
	err := s.fires(ctx, "InterlockRenewalsFail", cut, "the cut")
	if err != nil {
		cancel()
	}
	if err := errors.Join(err, <-mended); err != nil {
		return err
	}
	if err := s.resolves(ctx, "InterlockRenewalsFail"); err != nil {
		return err
	}
	return s.fires(ctx, "InterlockRenewalsLate", cut, "the cut")
}

// mend mends the link when less than half of the lease is left, and waits for the renewal, which is late then.
func (s *show) mend(ctx context.Context) error {
	cut, failures := true, 0
	for {
		var e interlock.Event
		select {
		case e = <-s.clerk.events:
		case <-ctx.Done():
			return ctx.Err()
		}
		switch {
		case e.Reason != "":
			return fmt.Errorf("the ledger's lock is lost (%s): %w", e.Reason, errUnexpected)
		case e.Late:
			s.say("a renewal is confirmed after %d failed, when %v was left: late, and nothing is lost", failures, tenths(e.Margin))
			return nil
		}
		if failures++; failures == 1 {
			s.say("a renewal fails; the lock is safe for %v more", tenths(e.Remained))
		}
		if cut && e.Remained < lease/2 {
			cut = false
			s.link.Pass()
			s.mark("mended")
			s.say("the link is mended")
		}
	}
}

// stopAndGoOn stops a shop that holds the market's lock, until the market has gone on without it.
func (s *show) stopAndGoOn(ctx context.Context) error {
	shop := s.actors[0]
	var holds word
	if err := errors.Join(shop.Send(order{Slow: true}), shop.Receive(&holds)); err != nil {
		return err
	}
	if err := shop.Suspend(); err != nil {
		return err
	}
	stopped := s.mark(shopName(0) + " stopped")
	s.say("%s is stopped (SIGSTOP) in the middle of a purchase, with token %d of the market's lock", shopName(0), holds.Token)
	bought := make(chan error, 1)
	go func() { bought <- s.order(ctx) }()
	if err := s.fires(ctx, "InterlockManyWait", stopped, "the stop"); err != nil {
		return err
	}
	if err := <-bought; err != nil {
		return fmt.Errorf("ann, who came after that: %w", err)
	}
	s.mark("lease over")
	s.say("its lease has ended: ann, who came after the stop, has the lock after %v, and everybody trades", tenths(time.Since(stopped)))
	if err := s.resolves(ctx, "InterlockManyWait"); err != nil {
		return err
	}
	return s.goOn(ctx)
}

func (s *show) goOn(ctx context.Context) error {
	shop := s.actors[0]
	if err := shop.Resume(); err != nil {
		return err
	}
	resumed := s.mark("goes on")
	s.say("%s goes on (SIGCONT)", shopName(0))
	var told word
	if err := shop.Receive(&told); err != nil {
		return err
	}
	if told.Wrote || told.Reason == "" {
		return fmt.Errorf("it writes %t, and was told %q: %w", told.Wrote, told.Told, errUnexpected)
	}
	s.say("it buys nothing, because it is told: %s", told.Told)
	if err := s.fires(ctx, "InterlockLockLost", resumed, "that"); err != nil {
		return err
	}
	return s.resolves(ctx, "InterlockLockLost")
}

// evening waits until no alert has fired for a while, and counts everything under the market's lock.
func (s *show) evening(ctx context.Context) error {
	err := until(ctx, "no alert fires", func(ctx context.Context) (bool, error) {
		quiet, err := s.prom.value(ctx, `absent_over_time(ALERTS{alertstate="firing"}[3s])`)
		return quiet == 1, err
	})
	if err != nil {
		return err
	}
	err = marketLock(s.office).Do(ctx, func(ctx context.Context) error { return countAll(ctx, s.client, s.customers) })
	if err != nil {
		return err
	}
	s.say("no alert fires")
	return s.report()
}

// report says what was traded, in all shops. A trade may fail in the shop that stood still: its connections did so too.
func (s *show) report() error {
	var all word
	for i, a := range s.actors {
		var w word
		if err := errors.Join(a.Send(order{}), a.Receive(&w)); err != nil {
			return fmt.Errorf("%s: %w", shopName(i), err)
		}
		all.Trades += w.Trades
		all.Failed += w.Failed
		all.Err = cmp.Or(w.Err, all.Err)
	}
	s.say("%d trades are done, and %d have failed%s; all %d goods and all money are there, once", all.Trades, all.Failed,
		inBrackets(all.Err), goods)
	return nil
}

func inBrackets(text string) string {
	if text == "" {
		return ""
	}
	return " (" + text + ")"
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
