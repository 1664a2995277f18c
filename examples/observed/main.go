// Observed shows what it looks like to watch locks: a marketplace with metrics, a Prometheus with the alerts of this
// repository, and two faults. Start it with
//
//	go run ./observed
//
// It takes about a minute. It starts a Redis and a Prometheus of its own, or says what to install:
//
//	shop 1 ... shop 4   processes whose customers buy and sell, all under the lock "market"  ─┐
//	clerk               holds the lock "ledger" all the time, over a link that can be cut     ─┤ /metrics
//	                                                                                           ▼
//	deploy/alerts.yaml, with a second for each minute ──────────────────────────────────▶ Prometheus
//
// First the clerk's link is cut. Renewals fail, an alert says so, and the link is mended before the lock is lost: that
// is what this alert is for. Then a shop is stopped by SIGSTOP in the middle of a purchase, while it holds the
// market's lock. It can report nothing, but the others wait, and an alert says so. After one lease the market goes on
// without it. Then the shop goes on as well, is told that it has lost the lock, writes nothing, and the alert of a
// loss fires. What is said of alerts is what Prometheus answers. In the end all goods and all money are counted.
//
// The rules are those of deploy/alerts.yaml with "m" replaced by "s" in each range, offset and for: a minute would make
// this take an hour. The lock's Lease is 20 s instead of the default of 30.
//
//	-svg FILE   draws what Prometheus has recorded, as in docs/observed.svg
//	-trace      prints the spans of one order that waits while the shop stands still
//	-keep       goes on at the end, with everything running, until it is interrupted
//
// The program ends with 0 if all of this happened, with 1 if something did not, with 69 if a server is not installed,
// and with 130 when it is interrupted.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/interlock-go/interlock/examples/internal/command"
	"github.com/interlock-go/interlock/examples/internal/part"
	"github.com/interlock-go/interlock/internal/servers"
)

// settings are those of the command line.
type settings struct {
	shops, crowd int // processes, and customers in each
	rules, svg   string
	trace, keep  bool
}

const (
	// lease is that of all locks. It leaves InterlockManyWait, which wants ten seconds, time to fire while a holder is
	// stopped.
	lease = 20 * time.Second

	// least is how many customers must be left when one shop is stopped: InterlockManyWait is about more than 20. By
	// default each of the others has as many, so that it is enough to scrape one of them: on a machine with much to do
	// a scrape may fail.
	least = 24
)

func main() {
	part.Play(parts)
	command.Main(run)
}

// run is the program. It returns its exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := command.Flags("observed", stderr)
	var s settings
	flags.IntVar(&s.shops, "shops", 4, "processes that trade")
	flags.IntVar(&s.crowd, "customers", 24, "customers in each")
	flags.StringVar(&s.rules, "rules", "", "file of alert rules (default "+alertFile+" of the repository)")
	flags.StringVar(&s.svg, "svg", "", "file to draw a picture into")
	flags.BoolVar(&s.trace, "trace", false, "print the spans of one order")
	flags.BoolVar(&s.keep, "keep", false, "go on at the end until interrupted")
	if code, ok := command.Parse(flags, args); !ok {
		return code
	}
	if err := s.check(); err != nil {
		fmt.Fprintln(stderr, "observed:", err)
		return command.Usage
	}
	err := s.onServers(ctx, stdout)
	switch {
	case errors.Is(err, servers.ErrMissing):
		fmt.Fprintln(stderr, "observed:", err)
		return command.Missing
	case err != nil && ctx.Err() != nil:
		fmt.Fprintln(stderr, "observed: interrupted")
		return command.Interrupted
	case err != nil:
		fmt.Fprintln(stderr, "observed:", err)
		return command.Failed
	}
	return 0
}

func (s *settings) check() error {
	if s.shops < 2 || s.crowd < 1 || (s.shops-1)*s.crowd < least || s.shops*s.crowd > 500 {
		return fmt.Errorf("without one of the shops there must be %d customers or more, and at most 500 with it", least)
	}
	return nil
}

// onServers starts everything, plays the show and draws it.
func (s *settings) onServers(ctx context.Context, w io.Writer) error {
	rules, err := readRules(s.rules)
	if err != nil {
		return err
	}
	stage, err := servers.NewStage()
	if err != nil {
		return err
	}
	defer stage.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // which ends the shops
	sh := &show{settings: *s, out: w}
	defer sh.close()
	if err := sh.open(ctx, stage, rules); err != nil {
		return err
	}
	err = sh.play(ctx)
	if s.svg != "" {
		err = errors.Join(err, sh.draw(ctx)) // of a run that went wrong too
	}
	if err != nil {
		return err
	}
	if s.keep {
		fmt.Fprintf(w, "\nThe market goes on; see http://%s/alerts. Interrupt to end everything.\n", sh.prom.addr)
		<-ctx.Done()
	}
	return nil
}

// draw writes the picture.
func (s *show) draw(ctx context.Context) error {
	r, err := s.record(ctx)
	if err != nil {
		return err
	}
	return os.WriteFile(s.svg, r.svg(), 0o644)
}
