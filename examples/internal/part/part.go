// Package part lets a program start itself once more to play a part of its own, such as one of several competing
// processes, and talk with it in lines of JSON over the child's standard input and output.
package part

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/interlock-go/interlock/internal/childproc"
)

// role is what the program is started again for, with a brief in JSON.
const role = "examples/part"

type brief struct {
	Name string
	Arg  json.RawMessage
}

// Play runs the part that this process was started for, one of parts by name, and ends the process. It returns at once
// in a process that was started by somebody else. Call it first thing in main, and in TestMain.
func Play(parts map[string]func(ctx context.Context, s *Stage) error) {
	parent, text, is := childproc.Serve(role)
	if !is {
		return
	}
	if err := play(parent, text, parts); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func play(parent *childproc.Conn, text string, parts map[string]func(ctx context.Context, s *Stage) error) error {
	var b brief
	if err := json.Unmarshal([]byte(text), &b); err != nil {
		return fmt.Errorf("the part is no JSON: %w", err)
	}
	f, known := parts[b.Name]
	if !known {
		return fmt.Errorf("there is no part %q", b.Name)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s := &Stage{arg: b.Arg, in: make(chan json.RawMessage, 16), parent: parent}
	go s.listen(cancel) // ends with the parent's line, or with the process
	return f(ctx, s)
}

// Stage is what a part has of the process that started it. The part's context ends when the
// parent stops it, or is gone.
type Stage struct {
	arg    json.RawMessage
	in     chan json.RawMessage // from listen, which closes it
	parent *childproc.Conn
}

// listen takes what the parent says, and calls hangUp when it says no more.
func (s *Stage) listen(hangUp func()) {
	defer hangUp()
	defer close(s.in)
	for {
		var said json.RawMessage
		if s.parent.Receive(&said) != nil {
			return
		}
		s.in <- said
	}
}

// Arg reads what the part was started with into v.
func (s *Stage) Arg(v any) error { return json.Unmarshal(s.arg, v) }

// Send tells the parent v.
func (s *Stage) Send(v any) error { return s.parent.Send(v) }

// Receive waits for what the parent says next. It is io.EOF when the parent says no more.
func (s *Stage) Receive(v any) error {
	said, more := <-s.in
	if !more {
		return io.EOF
	}
	return json.Unmarshal(said, v)
}

// Actor is a process that plays a part. Receive returns io.EOF when the part has ended. Kill ends it as kill -9 does,
// and Wait returns when it has ended, with how it failed, if so.
type Actor struct{ *childproc.Child }

// Start starts this program once more, for the named part with arg. Its standard error is this process's. It is killed
// when ctx ends, and its own context ends with this process.
func Start(ctx context.Context, name string, arg any) (*Actor, error) {
	text, err := json.Marshal(arg)
	if err != nil {
		return nil, err
	}
	if text, err = json.Marshal(brief{Name: name, Arg: text}); err != nil {
		return nil, err
	}
	cmd, err := childproc.Self(ctx, role, string(text))
	if err != nil {
		return nil, err
	}
	child, err := childproc.Open(cmd, nil)
	if err != nil {
		return nil, err
	}
	return &Actor{child}, nil
}

// Stop ends the part's context, and is Wait.
func (a *Actor) Stop() error {
	a.CloseInput()
	return a.Wait()
}
