// Package recipe is what the programs of the cookbook have in common: the URL of the engine, and hosts that use it.
package recipe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/examples/internal/command"
	_ "github.com/interlock-go/interlock/filelock"  // file://
	_ "github.com/interlock-go/interlock/memlock"   // mem://
	_ "github.com/interlock-go/interlock/mysqllock" // mysql://
	_ "github.com/interlock-go/interlock/pglock"    // postgres://
	_ "github.com/interlock-go/interlock/redislock" // redis://
)

// limit ends a program whose engine does not answer. All of them take a second or two.
const limit = time.Minute

// Run is a recipe: it uses the engine behind url, prints what happens, and fails if the effect is not what it promises.
type Run func(ctx context.Context, url string, out io.Writer) error

// Main runs a recipe as a program. The engine is that of --url, of INTERLOCK_URL, or memory.
func Main(run Run) {
	command.Main(func(ctx context.Context, args []string, stdout, stderr io.Writer) int {
		url := os.Getenv("INTERLOCK_URL")
		if url == "" {
			url = "mem://cookbook"
		}
		flags := command.Flags("cookbook", stderr)
		// The variable is not the flag's default, which -h would print with its password.
		given := flags.String("url", "", "the engine, such as redis://localhost (default INTERLOCK_URL, or memory)")
		if code, ok := command.Parse(flags, args); !ok {
			return code
		}
		if *given != "" {
			url = *given
		}
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		if err := run(ctx, url, Lines(stdout)); err != nil {
			fmt.Fprintln(stderr, err)
			return command.Failed
		}
		return 0
	})
}

// Host is one member of a fleet. Its client shares nothing with the others but the engine, as a process of its own.
type Host struct {
	Name  string
	Locks *interlock.Client
}

// Fleet is several hosts.
type Fleet []Host

// Open opens a client of url for each name. Close the fleet at the end.
func Open(ctx context.Context, url string, names ...string) (Fleet, error) {
	var fleet Fleet
	for _, name := range names {
		locks, err := interlock.Open(ctx, url, &interlock.Options{ClientName: name})
		if err != nil {
			fleet.Close()
			return nil, err
		}
		fleet = append(fleet, Host{name, locks})
	}
	return fleet, nil
}

// Close closes the clients. What they still hold is released.
func (f Fleet) Close() {
	for _, h := range f {
		_ = h.Locks.Close() // the program ends; what was not released ends with its lease
	}
}

// Each runs work on all hosts at once, and returns when all have ended. The first error ends the context of the others.
func (f Fleet) Each(ctx context.Context, work func(ctx context.Context, h Host) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	failed := make([]error, len(f))
	var all sync.WaitGroup
	for i, h := range f {
		all.Add(1)
		go func() { // ends with work, and Each waits for it
			defer all.Done()
			if err := work(ctx, h); err != nil {
				failed[i] = fmt.Errorf("%s: %w", h.Name, err)
				cancel()
			}
		}()
	}
	all.Wait()
	return errors.Join(failed...)
}

// Await waits until done is closed, or fails with ctx.
func Await(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Lines returns a writer on w for several goroutines.
func Lines(w io.Writer) io.Writer { return &lines{w: w} }

type lines struct {
	mu sync.Mutex // guards w
	w  io.Writer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}
