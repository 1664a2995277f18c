package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// desk is a terminal with a shell that has job control, and our command on its PATH.
type desk struct {
	t    *testing.T
	side *os.File // the keyboard and the screen
	dir  string   // where the shell is

	mu     sync.Mutex // guards screen
	screen string     // what was shown and not looked for yet
}

func sitDown(t *testing.T) *desk {
	t.Helper()
	ownSignals()
	side, tty := openPTY(t)
	dir := t.TempDir()
	// The test binary is our command when it is called by that name; see TestMain.
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, filepath.Join(dir, "interlock")); err != nil {
		t.Fatal(err)
	}
	shell := exec.Command("/bin/sh", "-i")
	shell.Dir = dir
	shell.Env = []string{
		"PATH=" + dir + ":" + os.Getenv("PATH"), "INTERLOCK_URL=file://" + dir + "/locks", "PS1=> ",
		"ENV=", "TERM=dumb", "HOME=" + dir,
	}
	shell.Stdin, shell.Stdout, shell.Stderr = tty, tty, tty
	shell.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := shell.Start(); err != nil {
		t.Fatal(err)
	}
	tty.Close()
	d := &desk{t: t, side: side, dir: dir}
	read := make(chan struct{})
	go func() { defer close(read); d.read() }() // ends when the terminal is closed
	t.Cleanup(func() {
		_ = shell.Process.Kill() // it may have ended
		_ = shell.Wait()
		side.Close()
		<-read
	})
	return d
}

func openPTY(t *testing.T) (side, tty *os.File) {
	t.Helper()
	side, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatalf("no terminals here: %v", err)
	}
	control, err := side.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var number int
	if err := control.Control(func(fd uintptr) {
		if number, err = unix.IoctlGetInt(int(fd), unix.TIOCGPTN); err == nil {
			err = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0)
		}
	}); err != nil {
		t.Fatal(err)
	}
	if err != nil {
		t.Fatalf("no terminals here: %v", err)
	}
	tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatalf("no terminals here: %v", err)
	}
	return side, tty
}

func (d *desk) read() {
	buffer := make([]byte, 4096)
	for {
		n, err := d.side.Read(buffer)
		if err != nil {
			return
		}
		d.mu.Lock()
		d.screen += string(buffer[:n])
		d.mu.Unlock()
	}
}

func (d *desk) types(s string) {
	d.t.Helper()
	if _, err := d.side.WriteString(s); err != nil {
		d.t.Fatal(err)
	}
}

// sees waits until the screen shows s, and forgets what was shown up to there.
func (d *desk) sees(s string) {
	d.t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); <-time.After(5 * time.Millisecond) {
		d.mu.Lock()
		_, after, found := strings.Cut(d.screen, s)
		if found {
			d.screen = after
		}
		d.mu.Unlock()
		if found {
			return
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.t.Fatalf("the screen does not show %q but %q", s, d.screen)
}

const (
	ctrlC = "\x03"
	ctrlZ = "\x1a"
)

// What is typed is echoed, so what is looked for is spelled differently in the commands.

func TestTerminal_IsTheJobs(t *testing.T) {
	t.Parallel()
	d := sitDown(t)
	d.types("interlock run n sh -c 'echo re\"\"ady; read x; echo got-$x'\n")
	d.sees("ready")
	d.types("line\n")
	d.sees("got-line")
	d.sees("> ") // and the shell has it back
	d.types("interlock run n sh -c 'echo re\"\"ady; exec sleep 100'; echo code-$?\n")
	d.sees("ready")
	d.types(ctrlC)
	d.sees("code-130")
}

func TestTerminal_StopsAndContinuesTheJob(t *testing.T) {
	t.Parallel()
	d := sitDown(t)
	d.types("interlock run n sh -c 'echo re\"\"ady; read x; echo got-$x; exit 7'\n")
	d.sees("ready")
	d.types(ctrlZ)
	d.sees("Stopped")
	d.types("interlock run n -n true; echo code-$?\n")
	d.sees("code-75") // a stopped job keeps its lock
	d.types("fg\n")
	d.types("line\n")
	d.sees("got-line")
	d.types("echo code-$?\n")
	d.sees("code-7")
}

func TestTerminal_InAPipelineIsGivenToAJobThatReachesForIt(t *testing.T) {
	t.Parallel()
	d := sitDown(t)
	d.types("echo piped | interlock run n sh -c 'cat; read x </dev/tty; echo got-$x' | cat\n")
	d.sees("piped\r\n")
	d.types("line\n")
	d.sees("got-line")
	d.types("interlock run n sh -c 'echo re\"\"ady; exec sleep 100' | cat; echo do\"\"ne\n")
	d.sees("ready")
	d.types(ctrlC)
	d.sees("> ")
}

func TestTerminal_InTheBackgroundStopsAJobThatReads(t *testing.T) {
	t.Parallel()
	d := sitDown(t)
	d.types("interlock run n sh -c 'echo re\"\"ady; read x; echo got-$x' &\n")
	d.sees("ready")
	d.types("\n") // shells tell of jobs at their next prompt
	deadline := time.Now().Add(patience)
	for time.Now().Before(deadline) {
		d.types("jobs\n")
		<-time.After(50 * time.Millisecond)
		d.mu.Lock()
		stopped := strings.Contains(d.screen, "Stopped")
		d.mu.Unlock()
		if stopped {
			break
		}
	}
	d.sees("Stopped")
	d.types("fg\nline\n")
	d.sees("got-line")
}

func TestTerminal_ShowsWhomAWaitIsFor(t *testing.T) {
	t.Parallel()
	d := sitDown(t)
	d.types("interlock run n sh -c 'touch held; exec sleep 100' &\n")
	d.types("while [ ! -e held ]; do sleep 0.01; done; echo he\"\"ld\n")
	d.sees("held\r\n")
	d.types("interlock run n true; echo code-$?\n")
	d.sees(`waiting: "n" is held by`)
	d.types(ctrlC)
	d.sees("code-130")
	d.types("kill %1; wait; echo fr\"\"ee\n")
	d.sees("free")
}
