package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/interlock-go/interlock/examples/internal/command"
	"github.com/interlock-go/interlock/examples/internal/part"
	"github.com/interlock-go/interlock/internal/servers"
)

const (
	item = "phone" // what is sold

	// again is how long an order is left to a consumer, see site.
	again = time.Second

	// lengthHold is how long a reservation waits for its order.
	lengthHold = 30 * time.Second
)

// settings are those of the command line.
type settings struct {
	stock, limit, users, consumers int
	rate                           float64
	length                         time.Duration
	queue                          string
	seed                           uint64
}

func (s *settings) sale() sale {
	now := time.Now()
	return sale{
		Stock: s.stock, Limit: s.limit, Opens: now.Add(-time.Minute), Closes: now.Add(time.Hour), Hold: lengthHold,
	}
}

// onServers starts the servers, runs the sale and verifies it.
func (s *settings) onServers(ctx context.Context, stdout, stderr io.Writer) int {
	stage, err := servers.NewStage()
	if err != nil {
		fmt.Fprintln(stderr, "flashsale:", err)
		return command.Failed
	}
	defer stage.Close()
	at, stop, err := s.start(stage)
	if err != nil {
		fmt.Fprintln(stderr, "flashsale:", err)
		if errors.Is(err, servers.ErrMissing) {
			return command.Missing
		}
		return command.Failed
	}
	defer stop()
	if err := s.run(ctx, at, stdout); err != nil {
		fmt.Fprintln(stderr, "flashsale:", err)
		return command.Failed
	}
	return verifyByCommand(ctx, at, stdout, stderr)
}

func (s *settings) start(stage *servers.Stage) (at site, stop func(), err error) {
	at, stop = site{Item: item, Again: again}, func() {}
	dir := ""
	err = stage.Play(func(t testing.TB) {
		// With its file Redis finds everything again after a kill -9, but for what it answers while its disk is
		// slow, and after a loss of power but for the last second. Where that is too much, appendfsync always
		// writes before each answer.
		at.Redis = servers.RedisServer(t, &servers.RedisOptions{Config: map[string]string{"appendonly": "yes"}}).Addr()
		at.MariaDB = servers.MariaDB(t)
		dir = t.TempDir()
	})
	if err != nil || s.queue != "nats" {
		return at, stop, err
	}
	n, err := startNATS(filepath.Join(dir, "nats"), 0)
	if err != nil {
		return at, stop, err
	}
	at.NATS = n.url()
	return at, n.stop, nil
}

// run opens the sale, lets the crowd in, kills a consumer in the middle, and waits until every order is done.
func (s *settings) run(ctx context.Context, at site, w io.Writer) error {
	o, err := at.open(ctx, "office")
	if err != nil {
		return err
	}
	defer o.close()
	if err := o.load(ctx, s.sale()); err != nil {
		return err
	}
	fmt.Fprintf(w, "%d items, %d for each of %d users, %.0f orders a second for %v, seed %d; queue: %s; "+
		"verify with\n  %s\n\n",
		s.stock, s.limit, s.users, s.rate, s.length, s.seed, s.queue, byHand(at))
	consumers, err := s.hire(ctx, at)
	if err != nil {
		return err
	}
	shots, err := s.trade(ctx, o, consumers[0])
	if err != nil {
		return err
	}
	report(w, shots, s.stock)
	return s.finish(ctx, at, consumers[1:])
}

// trade lets the crowd in. Beside it the sweeper runs, and in the middle one consumer is killed: the orders that it had
// are delivered to the others, or to those who come after.
func (s *settings) trade(ctx context.Context, o *office, victim *part.Actor) (shots []shot, err error) {
	sweeping, stop := context.WithCancel(ctx)
	defer stop()
	var aside sync.WaitGroup
	aside.Go(func() { err = (&sweeper{stock: o.stock, locks: o.locks, at: passThrough}).run(sweeping) })
	aside.Go(func() {
		pause(sweeping, s.length/2)
		victim.Kill()
	})
	g := &gate{stock: o.stock, queue: o.queue, at: passThrough}
	shots = crowd{gate: g, rate: s.rate, length: s.length, users: s.users, seed: s.seed}.shoot(ctx)
	stop()
	aside.Wait()
	return shots, err
}

func (s *settings) hire(ctx context.Context, at site) (hired []*part.Actor, err error) {
	for i := range s.consumers {
		a, err := part.Start(ctx, consumerPart, role{Site: at, Name: fmt.Sprint("consumer-", i)})
		if err != nil {
			return nil, err
		}
		hired = append(hired, a)
	}
	return hired, nil
}

// finish sends the consumers home, and has one more do what is left.
func (s *settings) finish(ctx context.Context, at site, consumers []*part.Actor) error {
	var failed error
	for _, c := range consumers {
		failed = errors.Join(failed, c.Stop())
	}
	last, err := part.Start(ctx, consumerPart, role{Site: at, Name: "last", Drain: true})
	if err != nil {
		return errors.Join(failed, err)
	}
	return errors.Join(failed, last.Wait(), ctx.Err())
}

func report(w io.Writer, shots []shot, stock int) {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "answer\torders\tp50\tp99\tslowest\t")
	groups := byAnswer(shots)
	for _, a := range slices.Sorted(maps.Keys(groups)) {
		took := groups[a]
		fmt.Fprintf(t, "%s\t%d\t%v\t%v\t%v\t\n",
			a, len(took), percentile(took, 0.5), percentile(took, 0.99), percentile(took, 1))
	}
	_ = t.Flush() // an error of standard output has nowhere to be told
	lucky, first := early(shots, stock)
	fmt.Fprintf(w, "\nTimes count from when an order should have been sent. "+
		"One consumer was killed with -9 in the middle.\n"+
		"%d orders were told that they are reserved (some twice, for a button pressed twice); "+
		"%d of them were among the first %d users.\n\n", lucky, first, stock)
}

// byHand is the command that verifies the sale.
func byHand(at site) string {
	line := fmt.Sprintf("flashsale verify -item %s -redis %s -mariadb %s", at.Item, at.Redis, at.MariaDB)
	if at.NATS != "" {
		line += " -nats " + at.NATS
	}
	return line
}

// verifyByCommand runs this program once more, as one would by hand.
func verifyByCommand(ctx context.Context, at site, stdout, stderr io.Writer) int {
	exe, err := os.Executable()
	if err != nil {
		fmt.Fprintln(stderr, "flashsale:", err)
		return command.Failed
	}
	args := []string{"verify", "-item", at.Item, "-redis", at.Redis, "-mariadb", at.MariaDB, "-nats", at.NATS}
	cmd := exec.CommandContext(ctx, exe, args...)
	cmd.Stdout, cmd.Stderr = stdout, stderr
	err = cmd.Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() > 0 {
		return exit.ExitCode()
	}
	if err != nil {
		fmt.Fprintln(stderr, "flashsale:", err)
		return command.Failed
	}
	return 0
}
