package workload

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/interlock-go/interlock/bench/peer"
	"github.com/interlock-go/interlock/bench/redisd"
)

// HerdResult is how long very many waited who all wanted one lock, and what they sent for it.
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
	// opening is how many clients a process opens at a time.
	opening = 16

	// warmUps is how often each has a lock before it counts: rueidis spreads its calls at random over connections that it
	// makes at their first use.
	warmUps = 8

	// Before the release it must have become calm: nothing is sent for calmFor. Those who poll never rest, so it is not
	// waited for longer than calmAtMost.
	calmFor    = 30 * time.Millisecond
	calmAtMost = time.Second
)

// member is a client of the herd and its worker.
type member struct {
	peer.Peer
	peer.Worker
}

// herd lets each goroutine of each process wait as a client of its own, and then releases the lock. The first process has
// one client more, which holds it before.
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
	sum := &part{Herd: &herdPart{}}
	errs := make([]error, len(members)+2)
	var all sync.WaitGroup
	if j.Index == 0 {
		all.Go(func() { errs[len(members)] = lead(ctx, spec, j, b, w, sum.Herd) })
	}
	begun := make(chan struct{})
	all.Go(func() { // one looks for all: ten thousand tickers would be all that the processor does
		defer close(begun)
		errs[len(members)+1] = until(alone, func() bool { return b.held.Load() > 0 })
	})
	b.ready.Add(int64(len(members)))
	var mu sync.Mutex // guards sum's numbers
	for i, m := range members {
		all.Go(func() {
			var at int64
			<-begun
			at, errs[i] = queue(ctx, m, j, time.Duration(i*j.Processes+j.Index)*j.Stagger, b, w)
			mu.Lock()
			defer mu.Unlock()
			sum.Herd.Last = max(sum.Herd.Last, at)
			if at == 0 {
				sum.Herd.Unserved++
			} else {
				sum.All++
			}
		})
	}
	all.Wait()
	if j.Index == 0 {
		sum.All++ // the leader's
	}
	return sum, someOf(errs) // the clients end with the process
}

// openHerd opens the clients. Each takes and releases a lock that it has for itself until its connections are made.
func openHerd(ctx context.Context, spec *peer.Spec, j *Job) ([]member, error) {
	if j.Shared {
		return sharers(ctx, spec, j)
	}
	members, errs := make([]member, j.Goroutines), make([]error, j.Goroutines)
	inParallel(opening, j.Goroutines, func(i int) {
		members[i], errs[i] = join(ctx, spec, j, fmt.Sprintf("warm:%d:%d", j.Index, i))
	})
	return members, someOf(errs)
}

// someOf joins the first few errors: a thousand clients would say the same a thousand times.
func someOf(errs []error) error {
	const shown = 3
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	return errors.Join(errs[:min(shown, len(errs))]...)
}

// sharers opens as many clients as the job says, of which all are workers, as evenly as possible.
func sharers(ctx context.Context, spec *peer.Spec, j *Job) ([]member, error) {
	clients := min(max(j.Clients, 1), j.Goroutines)
	members, errs := make([]member, j.Goroutines), make([]error, clients)
	inParallel(opening, clients, func(i int) {
		members[i], errs[i] = join(ctx, spec, j, fmt.Sprintf("warm:%d:%d", j.Index, i))
	})
	if err := someOf(errs); err != nil {
		return nil, err
	}
	for i := clients; i < j.Goroutines; i++ {
		p := members[i%clients].Peer
		worker, err := p.Worker()
		if err != nil {
			return nil, err
		}
		members[i] = member{p, worker}
	}
	return members, nil
}

func join(ctx context.Context, spec *peer.Spec, j *Job, own string) (member, error) {
	p, err := spec.Open(ctx, j.place())
	if err != nil {
		return member{}, err
	}
	keyed, ok := p.(peer.Keyed)
	if !ok {
		return member{}, fmt.Errorf("%s knows only one lock", spec.Name)
	}
	warm, err := keyed.WorkerOn(own)
	if err != nil {
		return member{}, err
	}
	for range warmUps {
		end, err := lockAtLast(ctx, warm)
		if err != nil {
			return member{}, err
		}
		err = warm.Unlock(ctx)
		end()
		if err != nil {
			return member{}, err
		}
	}
	worker, err := p.Worker()
	return member{p, worker}, err
}

// queue waits for the lock, beginning after its place in the order of all, and gives it on at once. It returns when it had
// it, or zero if it did not get it.
func queue(ctx context.Context, m member, j *Job, place time.Duration, b *board, w *witness) (at int64, err error) {
	defer b.done.Add(1)
	if b.held.Load() == 0 {
		return 0, errAlone
	}
	time.Sleep(place)
	b.asked.Add(1)
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
	meter := redisd.NewMeter(j.Redis, spec.Sends)
	defer meter.Close()
	n := int64(j.Processes * j.Goroutines)
	if err := until(alone, func() bool { return b.ready.Load() == n }); err != nil {
		return err
	}
	end, err := lockAtLast(ctx, m)
	if err != nil {
		return err
	}
	defer end()
	w.step(0)
	var before redisd.Count
	if meter != nil {
		if before, err = calm(ctx, meter); err != nil {
			return err
		}
	}
	b.held.Store(1)
	if err := until(alone+time.Duration(n)*j.Stagger, func() bool { return b.asked.Load() == n }); err != nil {
		return err
	}
	waiting, err := calm(ctx, meter)
	if err != nil {
		return err
	}
	burning := beginBurning(j.PID)
	released, err := monotonic()
	if err != nil {
		return err
	}
	if err := m.Unlock(ctx); err != nil {
		return err
	}
	if err := until(j.Limit+alone, func() bool { return b.done.Load() == n }); err != nil {
		return err
	}
	_, its := burning.spent()
	after, err := meter.Count(ctx)
	sum.Released = released
	sum.ServerCPU = its / float64(n)
	sum.Commands = float64(after.Sub(before).Commands) / float64(n)
	sum.After = float64(after.Sub(waiting).Commands) / float64(n)
	return err
}

// calm waits until nothing is sent any more, if that happens, and returns the count. Where nobody counts it waits for as
// long as it would for those who never rest.
func calm(ctx context.Context, m *redisd.Meter) (redisd.Count, error) {
	if m == nil {
		time.Sleep(calmAtMost)
		return redisd.Count{}, nil
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
