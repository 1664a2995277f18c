package childproc

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// roles are what the test's program does when it was started again.
var roles = map[string]func(parent *Conn, arg string){
	"echo":   echo,
	"deaf":   func(parent *Conn, _ string) { _ = parent.Send("here"); select {} },
	"wrong":  func(*Conn, string) { fmt.Fprintln(os.Stderr, "the disk is on fire"); os.Exit(3) },
	"chatty": func(parent *Conn, _ string) { _ = parent.Send(strings.Repeat("x", 1<<20)) },
	"heir":   inherit,
	"middle": startAnother,
}

func TestMain(m *testing.M) {
	for role, play := range roles {
		if parent, arg, serves := Serve(role); serves {
			play(parent, arg)
			os.Exit(0)
		}
	}
	os.Exit(m.Run())
}

// echo says its argument and then all that it is told. What it prints beside that is no message.
func echo(parent *Conn, arg string) {
	for err := parent.Send(arg); err == nil; {
		fmt.Println("printed")
		var word string
		if err = parent.Receive(&word); err == nil {
			err = parent.Send(word)
		}
	}
}

// inherit leaves a process behind that has its output, and ends when file 3 does.
func inherit(parent *Conn, _ string) {
	_ = parent.Send("the last word")
	heir := exec.CommandContext(context.Background(), "cat")
	heir.Stdin, heir.Stdout, heir.Stderr = os.NewFile(3, "life"), os.NewFile(1, "output"), os.Stderr
	if err := heir.Start(); err != nil {
		os.Exit(1)
	}
}

// startAnother starts a process that has file 3, tells its number, and waits for its own end.
func startAnother(parent *Conn, arg string) {
	cmd, err := Self(context.Background(), "deaf", "")
	if err != nil {
		os.Exit(1)
	}
	cmd.ExtraFiles = []*os.File{os.NewFile(3, "life")}
	c, err := Open(cmd, nil)
	if err != nil {
		os.Exit(1)
	}
	if arg == "suspended" && c.Suspend() != nil {
		os.Exit(1)
	}
	_ = parent.Send(c.PID())
	_ = parent.Receive(new(json.RawMessage))
}

// open starts this program again for a role, with files for it from number 3 on.
func open(t *testing.T, role, arg string, files ...*os.File) *Child {
	t.Helper()
	return openIn(t.Context(), t, role, arg, files...)
}

// openIn is open with a process that is killed when ctx ends.
func openIn(ctx context.Context, t *testing.T, role, arg string, files ...*os.File) *Child {
	t.Helper()
	cmd, err := Self(ctx, role, arg)
	if err != nil {
		t.Fatal(err)
	}
	cmd.ExtraFiles, cmd.Stderr = files, io.Discard
	c, err := Open(cmd, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Kill)
	return c
}

// hears fails unless that is what the process says next.
func (c *Child) hears(t *testing.T, want string) {
	t.Helper()
	var got string
	if err := c.Receive(&got); err != nil || got != want {
		t.Errorf("it says %q, %v; want %q", got, err, want)
	}
}
