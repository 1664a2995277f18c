// Command bench compares interlock with other ways to lock, in interleaved rounds and as ratios, and writes the tables of
// README.md.
//
//	GOWORK=off go run . -rounds N [-time D] [-scenario NAME] [-write]
//	GOWORK=off go run . -draw
//
// Without arguments it says how to use it.
//
// Scenarios whose names begin with "redis", "distance" or "growth", and with the names of other engines that have servers (zk,
// etcd, mysql, postgres, redlock; all of these together are "engines"), start servers of their own, and run only if -scenario asks
// for them. So does "comparison", which measures interlock on every engine and is not of peers.
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
	"slices"
	"strings"
	"time"

	"github.com/interlock-go/interlock/bench/compare"
	"github.com/interlock-go/interlock/bench/distance"
	"github.com/interlock-go/interlock/bench/peer"
	"github.com/interlock-go/interlock/bench/redisd"
	"github.com/interlock-go/interlock/bench/workload"
)

func main() {
	compare.ServeIfChild()
	distance.ServeIfChild()
	workload.ServeIfChild(peer.All())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
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
	draw     bool

	redis   string            // host:port of the server, while there is one
	servers map[string]string // the same by engine, of the other engines
	pids    map[string][]int  // their processes
}

// The files that -write writes.
const (
	readme   = "README.md"
	baseline = "baseline/rounds.txt"

	redisBaseline  = "baseline/redis.txt"
	engineBaseline = "baseline/engines.txt"

	distanceBaseline = "baseline/distance.txt"
	growthBaseline   = "baseline/growth.txt"
)

// tables says where -write puts the tables of a value of -scenario, and the rounds.
var tables = map[string]struct {
	marks marks
	raw   string
}{
	"":        {ofFiles, baseline},
	onRedis:   {ofRedis, redisBaseline},
	onEngines: {ofEngines, engineBaseline},

	onDistance: {ofDistance, distanceBaseline},
	onGrowth:   {ofGrowth, growthBaseline},
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
	flags.BoolVar(&s.write, "write", false, "put the tables into "+readme+" and the rounds into "+baseline)
	flags.BoolVar(&s.draw, "draw", false, "measure nothing: draw the pictures again from the rounds that -write has stored")
	flags.Usage = func() {
		fmt.Fprint(words, usage)
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	all, writable := tables[s.scenario]
	switch {
	case flags.NArg() > 0:
		return nil, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case s.rounds < 1 || s.time <= 0:
		return nil, errors.New("-rounds and -time must be positive")
	case s.write && s.scenario == onComparison:
	case s.write && !writable:
		return nil, fmt.Errorf("-write replaces all tables, so of -scenario it takes only %q, %q, %q, %q and %q, which have tables of their own",
			onRedis, onDistance, onGrowth, onEngines, onComparison)
	case s.write && s.raw == "":
		s.raw = all.raw
	}
	return &s, nil
}

// compares reports whether engines are compared with each other.
func (s *settings) compares() bool {
	return s.scenario == onComparison || strings.HasPrefix(s.scenario, onComparison+"/")
}

// run measures, prints the tables on stdout, and says on stderr where it is.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	if len(args) == 0 {
		args = []string{"-h"} // nobody is to start a long measurement by trying the command
	}
	s, err := parse(args, stderr)
	if err != nil {
		return err
	}
	if s.draw {
		return redraw(stdout)
	}
	if s.compares() {
		return runComparison(ctx, s, stdout, stderr)
	}
	chosen, err := chosenBy(s)
	if err != nil {
		return err
	}
	r := report{command: command(s), machine: describeMachine(ctx, s.dir)}
	began := readProcessors()
	if slices.ContainsFunc(chosen, func(sc scenario) bool { return sc.redis }) {
		server, err := redisd.Start(ctx)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, server.Close()) }()
		s.redis = server.Addr
		r.machine += " Redis " + server.Version + " on the same machine, over loopback."
	}
	on := &onServers{settings: s, machine: &r.machine}
	defer func() { err = errors.Join(err, on.close()) }()
	for _, sc := range chosen {
		fmt.Fprintf(stderr, "bench: %s\n", sc.name)
		if err := on.change(ctx, sc.engine); err != nil {
			return err
		}
		m, err := measure(ctx, sc, s, func(round int) { fmt.Fprintf(stderr, "  round %d of %d\n", round+1, s.rounds) })
		if err != nil {
			return fmt.Errorf("%s: %w", sc.name, err)
		}
		if sc.redis || sc.engine != "" {
			alone := *s
			alone.scenario = sc.name
			if sc.family != "" {
				alone.scenario = sc.family
			}
			m.command = command(&alone)
		}
		r.measured = append(r.measured, m)
	}
	r.machine += began.stolenUntil(readProcessors())
	text := r.markdown()
	fmt.Fprint(stdout, text)
	return s.store(r.benchfmt(), text)
}

// store keeps the rounds and the tables where the flags say, if they say so.
func (s *settings) store(rounds, text string) error {
	if s.raw != "" {
		if err := os.MkdirAll(filepath.Dir(s.raw), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(s.raw, []byte(rounds), 0o644); err != nil {
			return err
		}
	}
	if !s.write {
		return nil
	}
	of := tables[s.scenario]
	if _, err := draw(".", of.raw); err != nil {
		return err
	}
	return of.marks.write(readme, shown(of.raw)+text)
}

// redraw draws all pictures of which there are rounds.
func redraw(stdout io.Writer) error {
	drawn, err := draw(".", "")
	for _, file := range drawn {
		fmt.Fprintln(stdout, file)
	}
	return err
}

// chosenBy returns the scenarios that the flags ask for.
func chosenBy(s *settings) ([]scenario, error) {
	if s.scenario == "" {
		return scenarios(), nil
	}
	if s.scenario == onEngines {
		return engineScenarios(), nil
	}
	all := allScenarios()
	chosen := choose(all, s.scenario)
	if len(chosen) == 0 {
		return nil, fmt.Errorf("no scenario starts with %q; there are %s", s.scenario, names(all))
	}
	return chosen, nil
}

// allScenarios returns those of all tables.
func allScenarios() []scenario {
	return slices.Concat(scenarios(), redisScenarios(), distanceScenarios(), growthScenarios(), engineScenarios())
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
