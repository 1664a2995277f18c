package interlocktest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"github.com/interlock-go/interlock"
)

// Where holds come from: what the report at the test's end says, because the line that the testing package shows is
// that of its own clean-up.

// places has the call that got each hold which has not ended. Clients of all kinds tell it in the goroutine of the
// call.
type places struct {
	mu   sync.Mutex // guards what follows
	from map[interlock.HoldID]place
}

// place is a hold, and the stack of the call that got it.
type place struct {
	kind  interlock.Kind
	name  string
	owner string
	stack [48]uintptr // deep enough for the frames of the library, and then the caller's
}

// observer notes the calls, beside what the test's own Observer does.
func (p *places) observer(own *interlock.Observer) *interlock.Observer {
	ended := func(e interlock.Event) {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.from, e.Hold)
	}
	return interlock.JoinObservers(&interlock.Observer{
		Acquired: func(_ context.Context, e interlock.Event) {
			at := place{kind: e.Kind, name: e.Name, owner: e.Owner}
			runtime.Callers(2, at.stack[:])
			p.mu.Lock()
			defer p.mu.Unlock()
			p.from[e.Hold] = at
		},
		Released: ended, Lost: ended,
	}, own)
}

// of returns where the owner has got the lock, with words before it, or "" if that is not known.
func (p *places) of(kind interlock.Kind, name, owner string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	said := ""
	for _, at := range p.from {
		if at.kind == kind && at.name == name && at.owner == owner {
			said += ", locked at " + at.caller()
		}
	}
	return said
}

// caller is the line that called the library.
func (at *place) caller() string {
	frames := runtime.CallersFrames(at.stack[:])
	for {
		f, more := frames.Next()
		if f.Function != "" && !ofLibrary(f.Function) || !more {
			return fmt.Sprintf("%s:%d", shorter(f.File), f.Line)
		}
	}
}

// ofLibrary reports whether a function belongs to package interlock, to what it is made of, or to this package. Tests
// of this repository are packages of other names.
func ofLibrary(function string) bool {
	const module = "github.com/interlock-go/interlock"
	for _, pkg := range []string{".", "/internal/shell.", "/internal/core.", "/interlocktest."} {
		if strings.HasPrefix(function, module+pkg) {
			return true
		}
	}
	return false
}

// shorter is a file as a test prints it: from the folder in which the test runs, if it is there.
func shorter(file string) string {
	dir, err := os.Getwd()
	if err != nil {
		return file
	}
	if rel, err := filepath.Rel(dir, file); err == nil && !strings.HasPrefix(rel, "..") {
		return rel
	}
	return file
}
