package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/adapters/promlock"
	"github.com/interlock-go/interlock/examples/internal/bazaar"
	"github.com/interlock-go/interlock/examples/internal/part"
	"github.com/interlock-go/interlock/internal/servers"
	"github.com/redis/rueidis"
)

// show is one run.
type show struct {
	settings

	mu    sync.Mutex // guards out and marks
	out   io.Writer
	marks []mark
	begin time.Time // of the story

	client    rueidis.Client
	redis     string
	link      *servers.Proxy // between the clerk and Redis
	prom      prom
	actors    []*part.Actor
	customers []string
	clerk     *clerk
	office    *interlock.Client // of this process, not over the link
	tracing   *tracing
	ends      []func()
}

// mark is something that happened.
type mark struct {
	at   time.Time
	text string
}

// ann is a customer who comes to this process.
const ann = "ann"

// open starts the servers and all who trade.
func (s *show) open(ctx context.Context, stage *servers.Stage, rules string) error {
	err := stage.Play(func(t testing.TB) {
		s.redis = servers.Redis(t)
		s.link = servers.NewProxy(t, s.redis)
	})
	if err != nil {
		return err
	}
	if s.client, err = connect(s.redis); err != nil {
		return err
	}
	s.ends = append(s.ends, s.client.Close)
	roles := s.cast()
	if err := stock(ctx, s.client, s.customers); err != nil {
		return err
	}
	targets := map[string]string{}
	if targets["clerk"], err = s.openOffice(ctx); err != nil {
		return err
	}
	for i, r := range roles {
		if targets[shopName(i)], err = s.openShop(ctx, r); err != nil {
			return fmt.Errorf("%s: %w", shopName(i), err)
		}
	}
	return stage.Play(func(t testing.TB) {
		s.prom.addr = servers.PrometheusServer(t, &servers.PrometheusOptions{
			Config: configuration(targets),
			Files:  map[string]string{"alerts.yaml": hasten(rules)},
			Args:   []string{"--query.lookback-delta=5s"}, // instead of 5m
		}).Addr()
	})
}

func shopName(i int) string { return fmt.Sprint("shop ", i+1) }

// cast names all customers, and says who is in which shop.
func (s *show) cast() (roles []role) {
	s.customers = []string{ann}
	for i := range s.shops {
		r := role{Redis: s.redis, Slow: fmt.Sprint("slow", i)}
		for j := range s.crowd {
			r.Customers = append(r.Customers, fmt.Sprintf("customer%d_%d", i, j))
		}
		s.customers = append(append(s.customers, r.Customers...), r.Slow)
		roles = append(roles, r)
	}
	return roles
}

// openOffice opens what is in this process: the clerk, and a client for ann. It returns where their metrics are.
func (s *show) openOffice(ctx context.Context) (addr string, err error) {
	metrics := promlock.New(nil)
	addr, stop, err := serveMetrics(ctx, metrics)
	if err != nil {
		return "", err
	}
	s.ends = append(s.ends, stop)
	s.tracing = newTracing(s.trace)
	s.ends = append(s.ends, s.tracing.close)
	observer := interlock.JoinObservers(metrics.Observer(), s.tracing.observer())
	s.office, err = interlock.Open(ctx, "redis://"+s.redis, &interlock.Options{Lease: lease, Observer: observer})
	if err != nil {
		return "", err
	}
	s.ends = append(s.ends, func() { _ = s.office.Close() })
	if s.clerk, err = openClerk(ctx, s.link.Addr(), metrics.Observer()); err != nil {
		return "", err
	}
	s.ends = append(s.ends, func() { _ = s.clerk.locks.Close() })
	return addr, nil
}

func (s *show) openShop(ctx context.Context, r role) (addr string, err error) {
	a, err := part.Start(ctx, shopPart, r)
	if err != nil {
		return "", err
	}
	s.actors = append(s.actors, a)
	var w word
	err = a.Receive(&w)
	return w.Metrics, err
}

// close ends all that open has started, but for the servers, which are the stage's.
func (s *show) close() {
	for _, a := range s.actors {
		a.Kill()
	}
	for i := len(s.ends) - 1; i >= 0; i-- {
		s.ends[i]()
	}
}

// say tells the story, with the seconds since its beginning.
func (s *show) say(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(s.out, "%7.1fs  %s\n", time.Since(s.begin).Seconds(), fmt.Sprintf(format, args...))
}

// mark remembers what happened just now, for the picture, and returns when that was.
func (s *show) mark(text string) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.marks = append(s.marks, mark{now, text})
	return now
}

// order is ann's: she buys something, and is traced.
func (s *show) order(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	ctx, span := s.tracing.start(ctx, annsOrder)
	defer span.End()
	lock, book := marketLock(s.office), bazaar.Book{C: s.client}
	return lock.Do(ctx, func(ctx context.Context) error {
		pick, end := s.tracing.start(ctx, "pick")
		o, found, err := book.Pick(pick)
		end.End()
		if !found || err != nil {
			return fmt.Errorf("nothing is for sale: %w", errors.Join(err, errNever))
		}
		pay, end := s.tracing.start(ctx, "buy")
		defer end.End()
		_, err = book.Buy(pay, ann, o)
		return err
	})
}

const annsOrder = "order of ann"
