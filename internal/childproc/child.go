package childproc

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// Child is a process that talks over its standard input and output. End it with [Child.Wait] or
// [Child.Kill].
type Child struct {
	*Process
	*Conn
	input  io.WriteCloser
	output *output
	said   *tail
}

// Open starts cmd as [Start] does and talks with it in [JSON]. What the process writes to its standard error goes to
// cmd.Stderr, or to this process's own, and the end of it into errors.
func Open(cmd *exec.Cmd, launch func(*exec.Cmd) error) (*Child, error) {
	input, err := cmd.StdinPipe() // closed when the process has ended
	if err != nil {
		return nil, err
	}
	from, to, err := os.Pipe()
	if err != nil {
		_ = input.Close()
		return nil, err
	}
	c := &Child{input: input, output: &output{file: from}, said: &tail{to: cmd.Stderr}}
	if cmd.Stderr == nil {
		c.said.to = os.Stderr
	}
	cmd.Stdout, cmd.Stderr = to, c.said
	c.Conn = JSON(c.output, input)
	c.Process, err = Start(cmd, launch)
	_ = to.Close() // the process has its own
	if err != nil {
		_ = input.Close()
		_ = from.Close()
		return nil, err
	}
	c.output.of = c.Process
	go func() { // ends with the process
		<-c.exited
		c.output.soon()
	}()
	return c, nil
}

// Send tells the process v. It fails when the process has ended, also while it waits because the process does not read.
func (c *Child) Send(v any) error {
	if err := c.Conn.Send(v); err != nil {
		return c.because(err)
	}
	return nil
}

// Receive waits for what the process says next. Its error matches io.EOF when the process has ended or says no more,
// and tells how it ended and what it has written to its standard error last.
func (c *Child) Receive(v any) error {
	if err := c.Conn.Receive(v); err != nil {
		return c.because(err)
	}
	return nil
}

// because adds how the process has ended to what failed for that.
func (c *Child) because(err error) error {
	patience := time.NewTimer(leftOpen) // its pipes close a little before it can be waited for
	defer patience.Stop()
	select {
	case <-c.exited:
		return fmt.Errorf("the process %s%s: %w", c.State(), c.said, err)
	case <-patience.C:
		return fmt.Errorf("the process %s: %w", c.State(), err)
	}
}

// CloseInput tells the process that nothing more will be said. It may be called more than once.
func (c *Child) CloseInput() { _ = c.input.Close() }

// Wait returns when the process has ended, with how it failed, if so. What it still says is lost. Nothing but the end
// of its input, which [Child.CloseInput] tells, and of the context of its command, ends a process that goes on.
func (c *Child) Wait() error {
	_, _ = io.Copy(io.Discard, c.output) // a process that cannot write would not end
	<-c.exited
	c.output.close()
	if c.err != nil {
		return fmt.Errorf("the process %s%s: %w", c.State(), c.said, c.err)
	}
	return nil
}

// Kill is [Process.Kill]. What the process has said and nobody has received is lost.
func (c *Child) Kill() {
	c.Process.Kill()
	c.output.close()
}

// output reads what a process says. Any error is the end, so that it can be told from a message that cannot be
// understood.
type output struct {
	file *os.File
	of   *Process
}

func (o *output) Read(b []byte) (int, error) {
	if o.of.Ended() {
		o.soon()
	}
	n, err := o.file.Read(b)
	if err != nil {
		err = io.EOF
	}
	return n, err
}

// soon ends a read in a while: another process may have inherited the output and keep it open.
func (o *output) soon() {
	_ = o.file.SetReadDeadline(time.Now().Add(leftOpen)) // it is closed, or the system cannot
}

func (o *output) close() { _ = o.file.Close() }

// tailKept is how much of what a process has written to its standard error is shown.
const tailKept = 2 << 10

// tail hands on what a process writes, and keeps the end of it.
type tail struct {
	to io.Writer

	mu   sync.Mutex // guards last
	last []byte
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	t.last = append(t.last, b...)
	t.last = t.last[max(0, len(t.last)-tailKept):]
	t.mu.Unlock()
	return t.to.Write(b)
}

// String is for the end of a sentence about the process.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if text := strings.TrimSpace(string(t.last)); text != "" {
		return ", and wrote last: " + text
	}
	return ""
}
