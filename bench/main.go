// Command bench compares interlock with other ways to lock, in interleaved rounds and as ratios, and writes the tables of
// README.md.
//
//	GOWORK=off go run . [-rounds N] [-time D] [-scenario NAME] [-write]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"github.com/interlock-go/interlock/bench/peer"
	"github.com/interlock-go/interlock/bench/workload"
)

func main() {
	workload.ServeIfChild(peer.All())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// settings are what the flags say.
type settings struct {
	rounds   int
	time     time.Duration
	scenario string
	dir      string
	seed     uint64
	raw      string
	write    bool
}

// The files that -write writes.
const (
	readme   = "README.md"
	baseline = "baseline/rounds.txt"
)

func parse(args []string, words io.Writer) (*settings, error) {
	var s settings
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(words)
	flags.IntVar(&s.rounds, "rounds", 11, "how often each peer is measured")
	flags.DurationVar(&s.time, "time", 500*time.Millisecond, "how long each measurement lasts")
	flags.StringVar(&s.scenario, "scenario", "", "only the scenarios whose name starts with this")
	flags.StringVar(&s.dir, "dir", "", "where lock files are made; the default is the folder for temporary files")
	flags.Uint64Var(&s.seed, "seed", 1, "of the order of peers in each round")
	flags.StringVar(&s.raw, "raw", "", "also write every round to this file, for benchstat")
	flags.BoolVar(&s.write, "write", false, "put the tables into "+readme+" and the rounds into "+baseline)
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	switch {
	case flags.NArg() > 0:
		return nil, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case s.rounds < 1 || s.time <= 0:
		return nil, errors.New("-rounds and -time must be positive")
	case s.write && s.scenario != "":
		return nil, errors.New("-write replaces all tables, so it cannot be combined with -scenario")
	case s.write && s.raw == "":
		s.raw = baseline
	}
	return &s, nil
}

// run measures, prints the tables on stdout, and says on stderr where it is.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	s, err := parse(args, stderr)
	if err != nil {
		return err
	}
	chosen := choose(scenarios(), s.scenario)
	if len(chosen) == 0 {
		return fmt.Errorf("no scenario starts with %q; there are %s", s.scenario, names(scenarios()))
	}
	r := report{command: command(s), machine: describeMachine(ctx, s.dir)}
	for _, sc := range chosen {
		fmt.Fprintf(stderr, "bench: %s\n", sc.name)
		m, err := measure(ctx, sc, s, func(round int) { fmt.Fprintf(stderr, "  round %d of %d\n", round+1, s.rounds) })
		if err != nil {
			return fmt.Errorf("%s: %w", sc.name, err)
		}
		r.measured = append(r.measured, m)
	}
	tables := r.markdown()
	fmt.Fprint(stdout, tables)
	if s.raw != "" {
		if err := os.MkdirAll(filepath.Dir(s.raw), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(s.raw, []byte(r.benchfmt()), 0o644); err != nil {
			return err
		}
	}
	if s.write {
		return writeBetweenMarkers(readme, tables)
	}
	return nil
}

// command is what repeats the run. The folder is left out: it is this machine's.
func command(s *settings) string {
	c := fmt.Sprintf("GOWORK=off go run . -rounds %d -time %v -seed %d", s.rounds, s.time, s.seed)
	if s.scenario != "" {
		c += " -scenario " + s.scenario
	}
	return c
}

func names(all []scenario) string {
	var list []string
	for _, sc := range all {
		list = append(list, sc.name)
	}
	return strings.Join(list, ", ")
}
