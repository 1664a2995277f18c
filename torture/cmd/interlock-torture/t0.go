package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/interlock-go/interlock/torture/mutants"
)

// t0Seeds is how many runs the simulation makes, and t0Lasts about how long each is.
const (
	t0Seeds = 150
	t0Lasts = 45 * time.Second
)

// runT0 does what needs no server: the simulation with many seeds, and the searches of all states of the models.
func runT0(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("t0", flag.ContinueOnError)
	seeds := flags.Int("seeds", t0Seeds, "how many runs the simulation makes")
	row := flags.Uint64("row", 1, "which of the rows of seeds: the second begins where the first has ended")
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	if *seeds < 1 || *row < 1 {
		return fmt.Errorf("%w: -seeds and -row are at least 1", errUsage)
	}
	root, err := mutants.Root(".")
	if err != nil {
		return err
	}
	begun := time.Now()
	parts := []*part{
		{what: "simulation", args: []string{
			"./internal/sim", "-run", "^TestSimulation", "-sim.seeds=" + strconv.Itoa(*seeds),
			"-sim.hunt=" + strconv.FormatUint(*row, 10),
		}},
		{what: "models", args: []string{"./internal/handoff", "./internal/fencemodel"}},
	}
	var done sync.WaitGroup
	for _, p := range parts {
		done.Go(func() { p.run(ctx, root) })
	}
	done.Wait()
	failed := false
	for _, p := range parts {
		failed = !p.tell(os.Stdout) || failed
	}
	fmt.Printf("T0: %.1f s\n", time.Since(begun).Seconds())
	if failed {
		return errBroken
	}
	return ctx.Err()
}

// part is some tests of the repository. They are tests because virtual time (testing/synctest) is for tests alone.
type part struct {
	what string
	args []string
	out  bytes.Buffer
	err  error
}

func (p *part) run(ctx context.Context, root string) {
	cmd := exec.CommandContext(ctx, "go", append([]string{"test", "-count=1", "-v", "-timeout=1h"}, p.args...)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = root, &p.out, &p.out
	p.err = cmd.Run()
}

var (
	searched = regexp.MustCompile(`(\d+) states, (\d+) transitions`)
	lived    = regexp.MustCompile(`(\d+) runs, (\S+) simulated`)
	wrong    = regexp.MustCompile(`(?m)^.*(FAIL|_test\.go:\d+: .*(violations|fault|happened)|panic:).*$(\n    .*)?`)
	verdict  = regexp.MustCompile(`(?m)^--- (PASS|FAIL): (\w+)`)
)

// tell prints what the part has found, and reports whether it was green.
func (p *part) tell(out io.Writer) bool {
	text := p.out.String()
	if p.err != nil {
		fmt.Fprintf(out, "%s: BROKEN: %v\n%s\n", p.what, p.err, strings.Join(wrong.FindAllString(text, -1), "\n"))
		return false
	}
	tests, states := len(verdict.FindAllString(text, -1)), 0
	for _, m := range searched.FindAllStringSubmatch(text, -1) {
		n, _ := strconv.Atoi(m[1]) // digits, as the expression says
		states += n
	}
	lines := lived.FindAllString(text, -1)
	if states > 0 {
		lines = append(lines,
			fmt.Sprintf("%d states searched, and each rule of the protocol and of the fence found to be needed",
				states))
	}
	fmt.Fprintf(out, "%-11s kept: %d tests; %s\n", p.what, tests, strings.Join(lines, "; "))
	return true
}
