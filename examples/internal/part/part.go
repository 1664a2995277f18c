// Package part lets a program start itself once more to play a part of its own, such as one of several competing
// processes, and talk with it in lines of JSON over the child's standard input and output.
package part

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
)

// env names the variable that tells a process its part, as the JSON of a brief.
const env = "INTERLOCK_EXAMPLE_PART"

type brief struct {
	Name string
	Arg  json.RawMessage
}

// Play runs the part that this process was started for, one of parts by name, and ends the process. It returns at once in
// a process that was started by somebody else. Call it first thing in main, and in TestMain.
func Play(parts map[string]func(ctx context.Context, s *Stage) error) {
	text := os.Getenv(env)
	if text == "" {
		return
	}
	if err := play(text, parts); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func play(text string, parts map[string]func(ctx context.Context, s *Stage) error) error {
	var b brief
	if err := json.Unmarshal([]byte(text), &b); err != nil {
		return fmt.Errorf("the part in %s is no JSON: %w", env, err)
	}
	f, known := parts[b.Name]
	if !known {
		return fmt.Errorf("there is no part %q", b.Name)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s := &Stage{arg: b.Arg, in: make(chan json.RawMessage, 16), out: json.NewEncoder(os.Stdout)}
	go s.listen(cancel) // ends with the parent's line, or with the process
	return f(ctx, s)
}

// Stage is what a part has of the process that started it. The part's context ends when the parent stops it, or is gone.
type Stage struct {
	arg json.RawMessage
	in  chan json.RawMessage // from listen, which closes it
	mu  sync.Mutex           // guards out
	out *json.Encoder
}

// listen takes what the parent says, and calls hangUp when it says no more.
func (s *Stage) listen(hangUp func()) {
	defer hangUp()
	defer close(s.in)
	for in := json.NewDecoder(os.Stdin); ; {
		var said json.RawMessage
		if in.Decode(&said) != nil {
			return
		}
		s.in <- said
	}
}

// Arg reads what the part was started with into v.
func (s *Stage) Arg(v any) error { return json.Unmarshal(s.arg, v) }

// Send tells the parent v.
func (s *Stage) Send(v any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.Encode(v)
}

// Receive waits for what the parent says next. It is io.EOF when the parent says no more.
func (s *Stage) Receive(v any) error {
	said, more := <-s.in
	if !more {
		return io.EOF
	}
	return json.Unmarshal(said, v)
}

// Actor is a process that plays a part.
type Actor struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	in    *json.Encoder
	out   *json.Decoder
}

// Start starts this program once more, for the named part with arg. Its standard error is this process's. It is killed
// when ctx ends, and its own context ends with this process.
func Start(ctx context.Context, name string, arg any) (*Actor, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(arg)
	if err != nil {
		return nil, err
	}
	if text, err = json.Marshal(brief{Name: name, Arg: text}); err != nil {
		return nil, err
	}
	a := &Actor{cmd: exec.CommandContext(ctx, exe)}
	a.cmd.Env = append(os.Environ(), env+"="+string(text))
	a.cmd.Stderr = os.Stderr
	if a.stdin, err = a.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := a.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	a.in, a.out = json.NewEncoder(a.stdin), json.NewDecoder(out)
	return a, a.cmd.Start()
}

// Send tells the part v.
func (a *Actor) Send(v any) error { return a.in.Encode(v) }

// Receive waits for what the part says next. It is io.EOF when the part has ended.
func (a *Actor) Receive(v any) error { return a.out.Decode(v) }

// Kill ends the part as kill -9 does, and returns when it is gone.
func (a *Actor) Kill() {
	_ = a.cmd.Process.Kill() // an error says that it has ended by itself
	_ = a.Wait()             // it was killed
}

// Stop ends the part's context, and is Wait.
func (a *Actor) Stop() error {
	_ = a.stdin.Close() // an error says that it is closed already
	return a.Wait()
}

// Wait returns when the part has ended, with how it failed, if so. What it still says is lost.
func (a *Actor) Wait() error {
	var said json.RawMessage
	for a.out.Decode(&said) == nil { // the process must not be waited for before its output is read
	}
	if err := a.cmd.Wait(); err != nil {
		return fmt.Errorf("a process of this program failed: %w; it has said why on standard error", err)
	}
	return nil
}
