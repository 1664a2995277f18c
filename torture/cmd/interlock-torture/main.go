// Command interlock-torture puts an engine of interlock under faults and judges what happened: "interlock torture".
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	_ "github.com/interlock-go/interlock/etcdlock"
	_ "github.com/interlock-go/interlock/filelock"
	"github.com/interlock-go/interlock/internal/childproc"
	_ "github.com/interlock-go/interlock/memlock"
	_ "github.com/interlock-go/interlock/mysqllock"
	_ "github.com/interlock-go/interlock/pglock"
	_ "github.com/interlock-go/interlock/redislock"
	_ "github.com/interlock-go/interlock/redislock/redlock"
	"github.com/interlock-go/interlock/torture/mutants"
	"github.com/interlock-go/interlock/torture/worker"
	_ "github.com/interlock-go/interlock/zklock"
)

const usage = `interlock-torture: faults for an engine, and a verdict

  run    torture one engine: -engine redis -faults stop,cut -workers 4x2 -duration 20s -seed 1
  t0     the simulation and the searches of all states, without servers: seconds; in a clone, with Go
  t1     three minutes over all engines; what CI runs
  t2     every engine under each fault by itself, about an hour with -increments 100000; -o FILE writes docs/evidence/guarantees.md
  mutants
         known bugs put into copies of interlock: each must be noticed; -o FILE writes the table; in a clone, with Go
  check  DIR: judge a run again
  list   the engines, and the workloads and faults that each can have

"interlock-torture run -h" lists the flags. Exit codes: 0 all kept, 1 a claim is broken, 2 usage, 3 the run could not be made,
4 inconclusive: too little happened.
`

// workerWord makes this program a client process.
const workerWord = "worker"

// errBroken and errVacuous say that a run was made and how it went.
var (
	errBroken  = errors.New("a claim is broken")
	errVacuous = errors.New("inconclusive")
	errUsage   = errors.New("usage")
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := command(ctx, os.Args[1:])
	stop()
	switch {
	case err == nil:
		return
	case errors.Is(err, errBroken):
		fail(1, err)
	case errors.Is(err, errUsage):
		fail(2, err)
	case errors.Is(err, errVacuous):
		fail(4, err)
	default:
		fail(3, err)
	}
}

func fail(code int, err error) {
	fmt.Fprintln(os.Stderr, "interlock-torture:", err)
	os.Exit(code)
}

func command(ctx context.Context, args []string) error {
	if len(args) == 0 {
		fmt.Fprint(os.Stderr, usage)
		return errUsage
	}
	switch args[0] {
	case workerWord:
		return worker.Run(ctx, childproc.JSON(os.Stdin, os.Stdout))
	case "run":
		return runOne(ctx, args[1:])
	case "t0":
		return runT0(ctx, args[1:])
	case "t1":
		return runT1(ctx, args[1:])
	case "t2":
		return runT2(ctx, args[1:])
	case "mutants":
		return runMutants(ctx, args[1:])
	case "check":
		return checkAgain(args[1:])
	case "list":
		list()
		return nil
	case "help", "-h", "--help":
		fmt.Print(usage)
		return nil
	}
	fmt.Fprint(os.Stderr, usage)
	return fmt.Errorf("%w: there is no command %q", errUsage, args[0])
}

// runMutants puts known bugs into copies of interlock, and wants each noticed.
func runMutants(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("mutants", flag.ContinueOnError)
	seeds := flags.Int("seeds", 5, "how often each check is made, each time with another seed")
	only := flags.String("only", "", "only these, separated by commas, as in M1,M16")
	beside := flags.Int("beside", 0, "how many programs at once; 0 is one for each processor")
	out := flags.String("o", "",
		"write the table into this file, with -only the rows of these; by default it is only printed")
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	if *seeds < 1 {
		return fmt.Errorf("%w: -seeds %d: at least one", errUsage, *seeds)
	}
	root, err := mutants.Root(".")
	if err != nil {
		return err
	}
	h := &mutants.Hunt{Root: root, Seeds: *seeds, Beside: *beside, Log: os.Stderr}
	if *only != "" {
		h.Only = strings.Split(*only, ",")
	}
	found, err := h.Run(ctx)
	if err != nil {
		return err
	}
	page := mutants.Page(found, *seeds)
	fmt.Println(page)
	if err := mutants.Err(found); err != nil {
		return fmt.Errorf("%w: %w", errBroken, err)
	}
	if *out == "" {
		return nil
	}
	if old, err := os.ReadFile(*out); err == nil && *only != "" {
		page = mutants.Merge(string(old), page)
	}
	return os.WriteFile(*out, []byte(page), 0o644)
}
