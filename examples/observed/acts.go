package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/interlock-go/interlock"
)

// play plays all acts, and counts at the end.
func (s *show) play(ctx context.Context) error {
	if err := s.awaitScrapes(ctx); err != nil {
		return err
	}
	s.begin = time.Now()
	fmt.Fprintf(s.out, "%d shops with %d customers each, one lock for the market; a clerk who holds the ledger's; "+
		"each lease is %v.\n"+
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

// morning waits until the clerk has renewed twice while it was watched: from then on there is nearly a third of a
// lease until the next renewal.
func (s *show) morning(ctx context.Context) error {
	const renewals = `interlock_renewals_total{class="ledger",result="ok"}`
	before, err := s.prom.value(ctx, renewals)
	if err != nil {
		return err
	}
	err = until(ctx, "the clerk renews and no alert fires", func(ctx context.Context) (bool, error) {
		n, err := s.prom.value(ctx, renewals)
		_, fires, also := s.prom.firing(ctx, "")
		return n >= before+2 && !fires, errors.Join(err, also)
	})
	if err != nil {
		return err
	}
	rate, err := s.prom.value(ctx, `sum(rate(interlock_hold_duration_seconds_count{class="market"}[5s]))`)
	if err != nil {
		return err
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
	for len(s.clerk.events) > 0 { // of before
		<-s.clerk.events
	}
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
			s.say("a renewal is confirmed after %d failed, when %v was left: late, and nothing is lost", failures,
				tenths(e.Margin))
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

// attempts is how often a shop is stopped. Prometheus must have seen everybody wait for ten seconds without a gap,
// which it may not on a machine with too much to do; and a lease does not wait for it.
const attempts = 3

// stopAndGoOn stops a shop until the market has gone on without it, and lets it go on.
func (s *show) stopAndGoOn(ctx context.Context) error {
	for attempt := 1; ; attempt++ {
		seen, err := s.stop(ctx)
		if err != nil {
			return err
		}
		if !seen && attempt == attempts {
			return fmt.Errorf("InterlockManyWait fires, in %d attempts: %w", attempts, errNever)
		}
		told, err := s.goOn()
		if err != nil {
			return err
		}
		if seen {
			return s.loss(ctx, told)
		}
		s.say("InterlockManyWait has not fired: scrapes have failed. Once more")
	}
}

// stop stops a shop that holds the market's lock, for as long as its lease, and reports whether an alert told so.
func (s *show) stop(ctx context.Context) (seen bool, err error) {
	shop := s.actors[0]
	var holds word
	if err := errors.Join(shop.Send(order{Slow: true}), shop.Receive(&holds), shop.Suspend()); err != nil {
		return false, err
	}
	stopped := s.mark(shopName(0) + " stopped")
	s.say("%s is stopped (SIGSTOP) in the middle of a purchase, with token %d of the market's lock", shopName(0),
		holds.Token)
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	bought := make(chan error, 1)
	go func() {
		defer cancel() // when the lease is over, nobody waits any more
		bought <- s.order(ctx)
	}()
	seen = s.fires(waiting, "InterlockManyWait", stopped, "the stop") == nil
	if err := <-bought; err != nil {
		return seen, fmt.Errorf("ann, who came after that: %w", err)
	}
	s.mark("lease over")
	s.say("its lease has ended: ann, who came after the stop, has the lock after %v, and everybody trades",
		tenths(time.Since(stopped)))
	if !seen {
		return false, nil
	}
	return true, s.resolves(ctx, "InterlockManyWait")
}

// goOn lets the shop go on, which is told of its loss then, and returns when.
func (s *show) goOn() (told time.Time, err error) {
	shop := s.actors[0]
	if err := shop.Resume(); err != nil {
		return told, err
	}
	told = s.mark("goes on")
	s.say("%s goes on (SIGCONT)", shopName(0))
	var w word
	if err := shop.Receive(&w); err != nil {
		return told, err
	}
	if w.Wrote || w.Reason == "" {
		return told, fmt.Errorf("it writes %t, and was told %q: %w", w.Wrote, w.Told, errUnexpected)
	}
	s.say("it buys nothing, because it is told: %s", w.Told)
	return told, nil
}

// loss waits for the alert of the loss, and for its end.
func (s *show) loss(ctx context.Context, told time.Time) error {
	if err := s.fires(ctx, "InterlockLockLost", told, "that"); err != nil {
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
	s.say("%d trades are done, and %d have failed%s; all %d goods and all money are there, once", all.Trades,
		all.Failed, inBrackets(all.Err), goods)
	return nil
}

// inBrackets is for the end of a sentence, in one line.
func inBrackets(text string) string {
	if text == "" {
		return ""
	}
	return " (" + strings.ReplaceAll(text, "\n", "; ") + ")"
}
