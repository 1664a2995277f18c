package mutants

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Limit is how long a check may take to notice.
const Limit = 60 * time.Second

// Hunt is a search for mutants.
type Hunt struct {
	Root   string   // of the clone
	Seeds  int      // how often each check is made, each time with another seed
	Only   []string // IDs; empty means all
	Quick  bool     // leave out the checks that are runs with real processes, which wait for most of their time
	Beside int      // how many programs run at once; 0 means one for each processor
	Log    io.Writer
}

// Found is what one check made of one mutant, and of the program without it.
type Found struct {
	Mutant *Mutant
	Check  *Check
	Red    []Look // with the mutant, by seed
	Green  []Look // without
}

// Look is one run of a check.
type Look struct {
	Took    time.Duration
	Red     bool
	Skipped string // why it was not made, if it was not
	Said    string // what it said: of a red one the line that Check.Says describes
	Whole   string // all that it said
}

// OK reports whether every seed has noticed the mutant, and nothing without it.
func (f *Found) OK() bool {
	for i := range f.Red {
		if red, green := &f.Red[i], &f.Green[i]; green.Skipped == "" && (!red.Red || red.Said == "" || green.Red) {
			return false
		}
	}
	return true
}

// Run builds the programs and makes all checks.
func (h *Hunt) Run(ctx context.Context) ([]*Found, error) {
	all, err := chosen(h.Only)
	if err != nil {
		return nil, err
	}
	if h.Quick {
		for i := range all {
			all[i].Checks = slices.DeleteFunc(all[i].Checks, func(c Check) bool { return c.Where == Torture })
		}
	}
	return h.hunt(ctx, all)
}

func (h *Hunt) hunt(ctx context.Context, all []Mutant) ([]*Found, error) {
	dir, err := os.MkdirTemp("", "interlock-mutants-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	begun := time.Now()
	built, err := build(ctx, h.Root, dir, all)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(h.Log, "%d programs, built in %v\n", len(built), time.Since(begun).Round(100*time.Millisecond))
	b := &bench{h: h, built: built, turns: make(chan struct{}, h.beside()), greens: map[string]*green{}}
	var found []*Found
	var done sync.WaitGroup
	for i := range all {
		for j := range all[i].Checks {
			f := &Found{Mutant: &all[i], Check: &all[i].Checks[j], Red: make([]Look, h.Seeds), Green: make([]Look, h.Seeds)}
			found = append(found, f)
			done.Go(func() { b.look(ctx, f) })
		}
	}
	done.Wait()
	return found, ctx.Err()
}

func (h *Hunt) beside() int {
	if h.Beside > 0 {
		return h.Beside
	}
	return runtime.GOMAXPROCS(0)
}

// chosen returns the mutants of those IDs, or all.
func chosen(only []string) ([]Mutant, error) {
	if len(only) == 0 {
		return All(), nil
	}
	var some []Mutant
	for _, id := range only {
		before := len(some)
		for _, m := range All() {
			if m.ID == id {
				some = append(some, m)
			}
		}
		if len(some) == before {
			return nil, fmt.Errorf("there is no mutant %q: they are M1 to M18", id)
		}
	}
	return some, nil
}

// bench is where the programs are run.
type bench struct {
	h     *Hunt
	built programs
	turns chan struct{}

	mu     sync.Mutex        // guards greens and the log
	greens map[string]*green // by the key of a check and the seed
}

// green is a check without a mutant, which several mutants may have in common.
type green struct {
	once sync.Once
	look Look
}

// look makes one check of one mutant with every seed.
func (b *bench) look(ctx context.Context, f *Found) {
	for i := range f.Red {
		f.Green[i] = b.without(ctx, f.Check, i+1)
		if f.Green[i].Skipped == "" {
			f.Red[i] = b.run(ctx, f.Check, f.switched(), i+1)
		}
		b.mu.Lock()
		fmt.Fprintf(b.h.Log, "%-4s seed %d  %-8s without it %-8s %s\n", f.Mutant.ID, i+1, f.Red[i].word(), f.Green[i].word(), f.Check.Name)
		b.mu.Unlock()
	}
}

func (f *Found) switched() string {
	if f.Check.Switch != "" {
		return f.Check.Switch
	}
	return f.Mutant.ID
}

func (l *Look) word() string {
	switch {
	case l.Skipped != "":
		return "skipped"
	case l.Took == 0:
		return "-"
	case l.Red:
		return fmt.Sprintf("red %.1f s", l.Took.Seconds())
	}
	return fmt.Sprintf("green %.1f s", l.Took.Seconds())
}

// without makes the check without any mutant, once.
func (b *bench) without(ctx context.Context, c *Check, seed int) Look {
	key := c.key() + "\x00" + strconv.Itoa(seed)
	b.mu.Lock()
	g := b.greens[key]
	if g == nil {
		g = &green{}
		b.greens[key] = g
	}
	b.mu.Unlock()
	g.once.Do(func() { g.look = b.run(ctx, c, "", seed) })
	return g.look
}

// run makes a check as that mutant, or as none.
func (b *bench) run(ctx context.Context, c *Check, mutant string, seed int) Look {
	b.turns <- struct{}{}
	defer func() { <-b.turns }()
	ctx, cancel := context.WithTimeout(ctx, Limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, b.built[c.Where], c.arguments(seed)...)
	cmd.Dir = filepath.Join(b.h.Root, filepath.FromSlash(string(c.Where)))
	cmd.Env = append(os.Environ(), Variable+"="+mutant)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 5 * time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	begun := time.Now()
	err := cmd.Run()
	l := Look{Took: time.Since(begun), Red: err != nil, Whole: out.String()}
	switch {
	case ctx.Err() != nil:
		l.Whole += fmt.Sprintf("\nnothing after %v", Limit)
	case err == nil && skip.MatchString(l.Whole):
		l.Skipped = strings.TrimSpace(skip.FindStringSubmatch(l.Whole)[1])
	case err == nil && c.Test != "" && !strings.Contains(l.Whole, "--- PASS"):
		l.Red, l.Whole = true, l.Whole+"\nthere is no such test"
	case l.Red:
		l.Said = lineOf(l.Whole, c.Says)
	}
	return l
}

// skip finds the reason of a test that was skipped, which a test prints before it says so.
var skip = regexp.MustCompile(`(?m)^(.*)\n\s*--- SKIP`)

// arguments are those of one run.
func (c *Check) arguments(seed int) []string {
	args := []string{}
	if c.Test != "" {
		args = append(args, "-test.v", "-test.count=1", "-test.run="+c.Test)
	}
	for _, a := range c.Args {
		args = append(args, strings.ReplaceAll(a, "SEED", strconv.Itoa(seed)))
	}
	return args
}

// lineOf is the first line that the expression describes, or nothing.
func lineOf(text, says string) string {
	which := regexp.MustCompile(says)
	for line := range strings.Lines(text) {
		if which.MatchString(line) {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

// spaced is a name as the testing package shows it.
func spaced(name string) string { return regexp.QuoteMeta(strings.ReplaceAll(name, " ", "_")) }

func join(args []string) string { return strings.Join(args, "\x00") }

// Err says what is wrong, or nothing.
func Err(found []*Found) error {
	var errs []error
	for _, f := range found {
		for i := range f.Red {
			red, green := &f.Red[i], &f.Green[i]
			switch {
			case green.Skipped != "":
			case green.Red:
				errs = append(errs, fmt.Errorf("%s, seed %d: %s is red without the mutant:\n%s", f.Mutant.ID, i+1, f.Check.Name, tail(green.Whole)))
			case !red.Red:
				errs = append(errs, fmt.Errorf("%s, seed %d: %s does not notice it", f.Mutant.ID, i+1, f.Check.Name))
			case red.Said == "":
				errs = append(errs, fmt.Errorf("%s, seed %d: %s is red and does not say %q:\n%s", f.Mutant.ID, i+1, f.Check.Name, f.Check.Says, tail(red.Whole)))
			}
		}
	}
	return errors.Join(errs...)
}

// tail is the end of what a program has said.
func tail(text string) string {
	const most = 2000
	if len(text) > most {
		return "..." + text[len(text)-most:]
	}
	return text
}
