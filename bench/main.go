// Command bench compares interlock with other ways to lock, in interleaved rounds and as ratios, and writes the
// tables of README.md and of docs/evidence/bench.
//
//	GOWORK=off go run . -rounds N [-time D] [-scenario NAME] [-write]
//	GOWORK=off go run . -tables
//
// Without arguments it says how to use it. Scenarios that need servers start them, and run only if -scenario asks for
// them. So does "comparison", which measures interlock on every engine and is not of peers.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"github.com/interlock-go/interlock/bench/compare"
	"github.com/interlock-go/interlock/bench/distance"
	"github.com/interlock-go/interlock/bench/engined"
	"github.com/interlock-go/interlock/bench/peer"
	"github.com/interlock-go/interlock/bench/workload"
)

func main() {
	compare.ServeIfChild()
	distance.ServeIfChild()
	workload.ServeIfChild(peer.All())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := perform(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// usage stands before the list of flags.
const usage = `bench: compares interlock with other ways to lock

  -rounds 5 -time 400ms                     all scenarios that need no server: some 5 minutes
  -rounds 3 -time 300ms -scenario redis     those of one engine, whose server it starts: some 10 minutes
  -rounds 3 -time 300ms -scenario engines   those of all other engines: some 40 minutes

`

// settings are what the flags say.
type settings struct {
	rounds   int
	time     time.Duration
	scenario string
	dir      string
	seed     uint64
	raw      string
	write    bool
	tables   bool

	redis   string            // host:port of the server, while there is one
	servers map[string]string // the same by engine, of the other engines
	pids    map[string][]int  // their processes
}

func parse(args []string, words io.Writer) (*settings, error) {
	var s settings
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(words)
	flags.IntVar(&s.rounds, "rounds", 11, "how often each peer is measured")
	flags.DurationVar(&s.time, "time", 500*time.Millisecond, "how long each measurement lasts")
	flags.StringVar(&s.scenario, "scenario", "",
		"only the scenarios whose name starts with this; the default is all that need no server")
	flags.StringVar(&s.dir, "dir", "", "where lock files are made; the default is the folder for temporary files")
	flags.Uint64Var(&s.seed, "seed", 1, "of the order of peers in each round")
	flags.StringVar(&s.raw, "raw", "", "also write every round to this file, for benchstat")
	flags.BoolVar(&s.write, "write", false, "put the rounds into baseline and the tables into their pages")
	flags.BoolVar(&s.tables, "tables", false, "measure nothing: write the tables again from the rounds in baseline")
	flags.Usage = func() {
		fmt.Fprint(words, usage)
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	whole, writable := runOf(s.scenario)
	switch {
	case flags.NArg() > 0:
		return nil, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case s.rounds < 1 || s.time <= 0:
		return nil, errors.New("-rounds and -time must be positive")
	case s.write && s.scenario == onComparison:
	case s.write && !writable:
		return nil, fmt.Errorf("-write replaces whole tables, so of -scenario it takes only none, %s and %s",
			strings.Join(namesOfRuns(), ", "), onComparison)
	case s.write && s.raw == "":
		s.raw = whole.baseline()
	}
	return &s, nil
}

// compares reports whether engines are compared with each other.
func (s *settings) compares() bool {
	return s.scenario == onComparison || strings.HasPrefix(s.scenario, onComparison+"/")
}

// perform measures, prints the tables on stdout, and says on stderr where it is.
func perform(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if len(args) == 0 {
		args = []string{"-h"} // nobody is to start a long measurement by trying the command
	}
	s, err := parse(args, stderr)
	switch {
	case err != nil:
		return err
	case s.tables:
		return writeTables(".")
	case s.compares():
		return runComparison(ctx, s, stdout, stderr)
	}
	chosen, err := chosenBy(s)
	if err != nil {
		return err
	}
	from := provenance{command: command(s), machine: describeMachine(ctx, s.dir)}
	all, err := measureAll(ctx, s, chosen, &from.machine, stderr)
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "%s\n%s\n", from.command, from.machine)
	for _, t := range all.tablesOf() {
		fmt.Fprintf(stdout, "\n%s", t.markdown(all))
	}
	if s.raw != "" {
		err = writeRounds(s.raw, all, from)
	}
	if err == nil && s.write {
		err = writeTables(".")
	}
	return err
}

// measureAll starts the servers that the scenarios need, measures, and adds to the line about the machine what they ran
// on.
func measureAll(
	ctx context.Context, s *settings, chosen []scenario, machine *string, stderr io.Writer,
) (all rounds, err error) {
	began := readProcessors()
	if slices.ContainsFunc(chosen, func(sc scenario) bool { return sc.redis }) {
		server, err := engined.Start(ctx, engined.Redis)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, server.Close()) }()
		s.redis = server.Addr
		*machine += " " + server.Version + " on the same machine, over loopback."
	}
	on := &onServers{settings: s, machine: machine}
	defer func() { err = errors.Join(err, on.close()) }()
	for _, sc := range chosen {
		fmt.Fprintf(stderr, "bench: %s\n", sc.name)
		if err := on.change(ctx, sc.engine); err != nil {
			return nil, err
		}
		some, err := measure(ctx, sc, s, func(round int) {
			fmt.Fprintf(stderr, "  round %d of %d\n", round+1, s.rounds)
		})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", sc.name, err)
		}
		all = append(all, some...)
	}
	*machine += began.stolenUntil(readProcessors())
	return all, nil
}

// chosenBy returns the scenarios that the flags ask for.
func chosenBy(s *settings) ([]scenario, error) {
	if whole, is := runOf(s.scenario); is {
		return whole.scenarios(), nil
	}
	all := allScenarios()
	chosen := choose(all, s.scenario)
	if len(chosen) == 0 {
		return nil, fmt.Errorf("no scenario starts with %q; there are %s", s.scenario, names(all))
	}
	return chosen, nil
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
