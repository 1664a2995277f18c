package workload

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"time"

	"github.com/interlock-go/interlock/bench/engined"
	"github.com/interlock-go/interlock/bench/peer"
)

// HerdResult is how long it took until very many who all wanted one lock had it, and what they sent for it.
type HerdResult struct {
	Total    float64 // nanoseconds from the release that began it until the last of them had the lock, or the limit
	Unserved int     // who did not get it within the limit

	// What clients sent for each of them: in all, beginning before the first one asked, and of that after the release.
	Commands float64
	After    float64

	ServerCPU float64 // nanoseconds for each of them, after the release; zero if it is not known
}

// herdPart is a process's part of a HerdResult.
type herdPart struct {
	HerdResult
	Released, Last int64 // by monotonic
}

const (
	// Before the release it must have become calm: nothing is sent for calmFor. Those who poll never rest, so it is not
	// waited for longer than calmAtMost.
	calmFor    = 30 * time.Millisecond
	calmAtMost = time.Second

	// On databases all must wait in the server, where each has opened a connection for that, or the time of the herd
	// would be that of opening connections. Who gets there no more is not waited for longer than comingAtMost.
	comingAtMost = 20 * time.Second
)

// herd lets each goroutine of each process wait as a client of its own, and then releases the lock. The first process
// has one client more, which holds it before.
func herd(ctx context.Context, spec *peer.Spec, j *Job) (result *part, err error) {
	b, err := openBoard(j.Dir)
	if err != nil {
		return nil, err
	}
	w, err := openWitness(witnessPath(j.Dir))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.close(), w.close()) }()
	members, err := openHerd(ctx, spec, j)
	if err != nil {
		return nil, err
	}
	sum := &part{Herd: &herdPart{}, members: members}
	var led error
	var leading sync.WaitGroup
	if j.Index == 0 {
		leading.Go(func() { led = lead(ctx, spec, j, b, w, sum.Herd) })
	}
	all, err := queueAll(ctx, members, j, b, w)
	leading.Wait()
	for _, s := range all {
		sum.Herd.Last = max(sum.Herd.Last, s.last)
		sum.All += int64(s.times)
		if s.times < j.times() {
			sum.Herd.Unserved++
		}
	}
	if j.Index == 0 {
		sum.All++ // the leader's
	}
	return sum, errors.Join(err, led) // the clients end with the process, which waits for all the others
}

// served is how often one of the herd had the lock, and when it had it last, by monotonic.
type served struct {
	times int
	last  int64
}

// queueAll returns what each of the members got.
func queueAll(ctx context.Context, members []member, j *Job, b *board, w *witness) ([]served, error) {
	all, errs := make([]served, len(members)), make([]error, len(members)+1)
	var waits sync.WaitGroup
	begun := make(chan struct{})
	waits.Go(func() { // one looks for all: ten thousand tickers would be all that the processor does
		defer close(begun)
		errs[len(members)] = until(partnerTimeout, func() bool { return b.held.Load() > 0 })
	})
	b.ready.Add(int64(len(members)))
	for i, m := range members {
		waits.Go(func() {
			<-begun
			all[i], errs[i] = queue(ctx, m, j, time.Duration(i*j.Processes+j.Index)*j.Stagger, b, w)
			b.done.Add(1)
		})
	}
	waits.Wait()
	return all, someOf(errs)
}

// queue waits for the lock, beginning after its place in the order of all, and gives it on at once, as often as the job
// says or until it does not get it in time.
func queue(
	ctx context.Context, m member, j *Job, place time.Duration, b *board, w *witness,
) (got served, err error) {
	if b.held.Load() == 0 {
		return got, errPartnerGone
	}
	time.Sleep(place)
	b.asked.Add(1)
	for got.times < j.times() {
		at, err := takeOnce(ctx, m, j, w)
		if at == 0 || err != nil {
			return got, err
		}
		got.times, got.last = got.times+1, at
	}
	return got, nil
}

// takeOnce waits for the lock and gives it on. It returns when it had it, or zero if it did not get it.
func takeOnce(ctx context.Context, m member, j *Job, w *witness) (at int64, err error) {
	bounded, err := lockWithin(ctx, m, j.Limit)
	if err != nil || bounded.hung {
		return 0, err
	}
	defer bounded.end()
	at, err = monotonic()
	w.step(0)
	return at, errors.Join(err, m.Unlock(ctx))
}

// lead holds the lock until all others wait, and counts what they send.
func lead(ctx context.Context, spec *peer.Spec, j *Job, b *board, w *witness, sum *herdPart) error {
	m, err := join(ctx, spec, j, "warm:leader")
	if err != nil {
		return err
	}
	meter := engined.NewMeter(j.Redis, spec.Sends)
	defer meter.Close()
	n := int64(j.Processes * j.Goroutines)
	if err := until(partnerTimeout, func() bool { return b.ready.Load() == n }); err != nil {
		return err
	}
	end, err := lockAtLast(ctx, m)
	if err != nil {
		return err
	}
	defer end()
	w.step(0)
	var before engined.Count
	if meter != nil {
		if before, err = calm(ctx, meter); err != nil {
			return err
		}
	}
	b.held.Store(1)
	if err := until(partnerTimeout+time.Duration(n)*j.Stagger, func() bool { return b.asked.Load() == n }); err != nil {
		return err
	}
	if err := allCome(ctx, spec, j); err != nil {
		return err
	}
	waiting, err := calm(ctx, meter)
	if err != nil {
		return err
	}
	if err := letGo(ctx, m, j, b, n, sum); err != nil {
		return err
	}
	after, err := meter.Count(ctx)
	grants := float64(n) * float64(j.times())
	sum.Commands = float64(after.Sub(before).Commands) / grants
	sum.After = float64(after.Sub(waiting).Commands) / grants
	return err
}

// letGo releases the lock, and returns when all n had it. The leader's connection too is there until then.
func letGo(ctx context.Context, leader member, j *Job, b *board, n int64, sum *herdPart) (err error) {
	burning := startCPUUsage(j.PIDs)
	if sum.Released, err = monotonic(); err != nil {
		return err
	}
	if err := leader.Unlock(ctx); err != nil {
		return err
	}
	err = until(j.Limit+partnerTimeout, func() bool { return b.done.Load() == n })
	_, its := burning.spent()
	runtime.KeepAlive(leader)
	sum.ServerCPU = its / (float64(n) * float64(j.times()))
	return err
}

// allCome waits until the server says that all of them wait, if it tells. Of clients that are shared, whose goroutines
// do not all wait in the server, it waits until no more have come for a while.
func allCome(ctx context.Context, spec *peer.Spec, j *Job) (err error) {
	if spec.Outside {
		return nil
	}
	q, err := engined.OpenQueue(ctx, spec.Engine, j.Server)
	if errors.Is(err, engined.ErrNoQueue) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, q.Close()) }()
	all := j.Processes * j.Goroutines
	last, since := -1, time.Now()
	for begin := since; time.Since(begin) < comingAtMost; time.Sleep(calmFor) {
		n, err := q.Len(ctx)
		if err != nil || n >= all {
			return err
		}
		if n != last {
			last, since = n, time.Now()
		}
		if j.Shared && time.Since(since) > calmAtMost {
			break
		}
	}
	return nil
}

// calm waits until nothing is sent any more, if that happens, and returns the count. Where nobody counts it waits for
// as long as it would for those who never rest.
func calm(ctx context.Context, m *engined.Meter) (engined.Count, error) {
	if m == nil {
		time.Sleep(calmAtMost)
		return engined.Count{}, nil
	}
	c, err := m.Count(ctx)
	for begin := time.Now(); err == nil && time.Since(begin) < calmAtMost; {
		time.Sleep(calmFor)
		before := c
		if c, err = m.Count(ctx); c.Sub(before).Commands == 0 {
			break
		}
	}
	return c, err
}

// inParallel calls f for 0 to n-1, so many at a time.
func inParallel(atATime, n int, f func(i int)) {
	var all sync.WaitGroup
	places := make(chan struct{}, atATime)
	for i := range n {
		places <- struct{}{}
		all.Go(func() {
			f(i)
			<-places
		})
	}
	all.Wait()
}
