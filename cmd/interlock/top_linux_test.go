package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/interlock-go/interlock/internal/servers"
	"golang.org/x/sys/unix"
)

// starts top at a desk, whose settings it writes down first. It is a shell's child, so that its code is seen.
func (d *desk) startsTop(args string) {
	d.t.Helper()
	d.types("stty -g >before\n")
	d.types("sh -c 'echo $$ >pid.new; mv pid.new pid; " +
		"TERM=xterm exec interlock top --interval 0.1 " + args + "'; echo code-$?\n")
	d.sees(ttyEnter)
}

// hasLeft waits until top has given the terminal back and ended, and fails unless the terminal is as it was.
func (d *desk) hasLeft(code string) {
	d.t.Helper()
	d.sees(ttyLeave)
	d.sees("code-" + code)
	d.asBefore()
}

func (d *desk) asBefore() {
	d.t.Helper()
	d.types("stty -g >after; cmp before after && echo sa\"\"me\n")
	d.sees("same")
}

// resizes makes the terminal larger or smaller, which its programs are told by a signal.
func (d *desk) resizes(width, height uint16) {
	d.t.Helper()
	control, err := d.side.SyscallConn()
	if err == nil {
		err = errors.Join(err, control.Control(func(fd uintptr) {
			err = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Col: width, Row: height})
		}))
	}
	if err != nil {
		d.t.Fatal(err)
	}
}

// top is the process.
func (d *desk) top() int {
	d.t.Helper()
	text, err := os.ReadFile(filepath.Join(d.dir, "pid"))
	if err != nil {
		d.t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		d.t.Fatal(err)
	}
	return pid
}

func TestTopScreen_AnswersToKeys_AndToTheSizeOfTheTerminal(t *testing.T) {
	t.Parallel()
	d := sitDown(t)
	d.resizes(80, 24)
	d.types("interlock run 库存 sh -c 'touch held; exec sleep 100' &\n")
	d.types("while [ ! -e held ]; do sleep 0.01; done; echo he\"\"ld\n")
	d.sees("held\r\n")
	d.startsTop("")
	d.sees("interlock top  file")
	d.sees(">  库存  ")
	d.types("?")
	d.sees("select a lock, or a holder")
	d.sees("\x1b[24;1H")
	d.resizes(50, 10)
	d.sees(ttyClear)
	d.sees("\x1b[10;1H")
	d.types("\x1b") // alone it is a key
	d.sees(">  库存  ")
	d.types("\r")
	d.sees("1 holder")
	d.types("\x1bOA\x7fe") // a key that does nothing here, back, events
	d.sees("EVENTS")
	d.types("e/none\r")
	d.sees("nothing")
	d.types("\x1b")
	d.sees(">  库存  ")
	d.types("b")
	d.sees("b is off: the kernel")
	d.types("q")
	d.hasLeft("0")
	d.types("kill %1; wait; echo fr\"\"ee\n")
	d.sees("free")
}

func TestTopScreen_IsGivenBack_WhateverEndsIt(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT} {
		t.Run(signalName(sig), func(t *testing.T) {
			t.Parallel()
			d := sitDown(t)
			d.startsTop("")
			d.sees("interlock top")
			if err := syscall.Kill(d.top(), sig); err != nil {
				t.Fatal(err)
			}
			d.hasLeft(itoa(exitSignal + int(sig)))
		})
	}
	t.Run("by key", func(t *testing.T) {
		t.Parallel()
		d := sitDown(t)
		d.startsTop("")
		d.sees("interlock top")
		d.types(ctrlC)
		d.hasLeft("130")
	})
}

func TestTopScreen_IsGivenBackWhileItIsStopped(t *testing.T) {
	t.Parallel()
	d := sitDown(t)
	d.startsTop("")
	d.sees("interlock top")
	d.types(ctrlZ)
	d.sees(ttyLeave)
	d.sees("Stopped")
	d.asBefore()
	d.types("fg\n")
	d.sees(ttyEnter)
	d.sees("interlock top") // all of it is drawn anew
	d.types("q")
	d.sees(ttyLeave)
	d.types("echo code-$?\n")
	d.sees("code-0")
	d.asBefore()
}

// A panic must not leave a terminal that shows nothing of what is typed.
func TestScreen_IsGivenBackByAPanic(t *testing.T) {
	t.Parallel()
	side, tty := openPTY(t)
	defer side.Close()
	defer tty.Close()
	settings := func() *unix.Termios {
		now, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
		if err != nil {
			t.Fatal(err)
		}
		return now
	}
	before := *settings()
	s, err := newScreen(tty, tty, true)
	if err != nil {
		t.Fatal(err)
	}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
		}()
		_ = s.during(func() error {
			if *settings() == before {
				t.Error("the terminal is not set while it is used")
			}
			panic("in the middle")
		})
	}()
	if *settings() != before {
		t.Error("the terminal is not as it was")
	}
}

func TestTopScreen_BreaksAHold_AfterItsNameWasTyped(t *testing.T) {
	t.Parallel()
	url := "redis://" + servers.Redis(t) + "?check=none&prefix=top:"
	c := openClient(t, url, nil)
	lease, err := c.Lock(t.Context(), "nightly")
	if err != nil {
		t.Fatal(err)
	}
	d := sitDown(t)
	d.startsTop("--allow-break --url \"" + url + "\"")
	d.sees(">  nightly")
	d.types("b")
	d.sees("Type its name:")
	d.types("nigh\r")
	d.sees("not broken")
	if err := lease.Err(); err != nil {
		t.Fatalf("half a name was enough: %v", err)
	}
	d.types("bnightly\r")
	select {
	case <-lease.Lost():
	case <-time.After(patience):
		t.Fatal("the hold was not broken")
	}
	d.sees("nightly (mutex) is broken")
	d.types("e")
	d.sees("broken")
	d.types("q")
	d.hasLeft("0")
}

// An engine that does not answer ends nothing: what was seen stays, marked as stale, until it answers again.
func TestTopScreen_GoesOnWithoutTheEngine(t *testing.T) {
	t.Parallel()
	n := servers.RedisServer(t, nil)
	url := fmt.Sprintf("redis://%s?check=none", n.Addr())
	c := openClient(t, url, nil)
	lease, err := c.Lock(t.Context(), "nightly")
	if err != nil {
		t.Fatal(err)
	}
	d := sitDown(t)
	d.startsTop("--timeout 1s --url \"" + url + "\"")
	d.sees(">  nightly")
	n.Stop()
	d.sees("! STALE")
	d.sees(">  nightly")
	n.Cont()
	d.sees("nightly") // the table moves up when the warning goes
	d.types("q")
	d.hasLeft("0")
	if err := lease.Unlock(context.WithoutCancel(t.Context())); err != nil {
		t.Logf("Unlock: %v", err) // the server may have stood still for longer than the lease
	}
}

func TestTopScreen_RespectsWhatTheTerminalCannot(t *testing.T) {
	t.Parallel()
	d := sitDown(t) // TERM is dumb
	d.types("interlock top >board; echo code-$?\n")
	d.sees("code-0")
	d.types("interlock top; echo code-$?\n")
	d.sees("\r\nheld 0") // a line as any other
	d.sees("code-0")
	d.types("NO_COLOR=1 TERM=xterm interlock top; echo code-$?\n")
	d.sees(ttyEnter)
	d.sees("? help")
	d.types("?")
	d.sees("select a lock")
	d.types("b")
	d.sees("\x1b[24;1H> b is off") // without a colour before it
	d.types("q")
	d.sees("code-0")
}
