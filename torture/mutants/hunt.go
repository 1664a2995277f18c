package mutants

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"
)

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
			f := &Found{
				Mutant: &all[i], Check: &all[i].Checks[j], Red: make([]Look, h.Seeds), Green: make([]Look, h.Seeds),
			}
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
		before, all := len(some), All()
		for _, m := range all {
			if m.ID == id {
				some = append(some, m)
			}
		}
		if len(some) == before {
			return nil, fmt.Errorf("there is no mutant %q: they are %s to %s", id, all[0].ID, all[len(all)-1].ID)
		}
	}
	return some, nil
}

// Err says what is wrong, or nothing.
func Err(found []*Found) error {
	var errs []error
	for _, f := range found {
		for i := range f.Red {
			red, green := &f.Red[i], &f.Green[i]
			switch {
			case green.Skipped != "":
			case green.Red:
				errs = append(errs,
					fmt.Errorf("%s, seed %d: %s is red without the mutant:\n%s",
						f.Mutant.ID, i+1, f.Check.Name, tail(green.Whole)))
			case !red.Red:
				errs = append(errs, fmt.Errorf("%s, seed %d: %s does not notice it", f.Mutant.ID, i+1, f.Check.Name))
			case red.Said == "":
				errs = append(errs, fmt.Errorf("%s, seed %d: %s is red and does not say %q:\n%s",
					f.Mutant.ID, i+1, f.Check.Name, f.Check.Says, tail(red.Whole)))
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
