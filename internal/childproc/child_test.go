package childproc

import (
	"context"
	"errors"
	"io"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

func TestChild_TalksInJSON_AndEndsWithItsInput(t *testing.T) {
	c := open(t, "echo", "hello")
	c.hears(t, "hello")
	for _, word := range []string{"a", "b"} {
		if err := c.Send(word); err != nil {
			t.Fatal(err)
		}
		c.hears(t, word)
	}
	c.CloseInput()
	if err := c.Wait(); err != nil {
		t.Error(err)
	}
}

func TestReceive_FromAChildThatEndsEarly_SaysHowItEndedAndWhatItWrote(t *testing.T) {
	c := open(t, "wrong", "")
	for what, err := range map[string]error{"Receive": c.Receive(new(string)), "Wait": c.Wait()} {
		for _, want := range []string{"exit status 3", "the disk is on fire"} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, without %q", what, err, want)
			}
		}
	}
	if err := c.Receive(new(string)); !errors.Is(err, io.EOF) {
		t.Errorf("%v, want io.EOF", err)
	}
	if err := c.Send("anything"); err == nil || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("Send: %v", err)
	}
}

func TestKill_OfASuspendedChild_EndsWhoSendsAndWhoReceives(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no process is suspended there")
	}
	c := open(t, "deaf", "")
	c.hears(t, "here")
	if err := c.Suspend(); err != nil {
		t.Fatal(err)
	}
	returned := make(chan error)
	go func() { returned <- c.Send(strings.Repeat("x", 1<<20)) }() // more than a pipe holds
	go func() { returned <- c.Receive(new(string)) }()
	if state := c.State(); state != "was suspended" || c.Ended() {
		t.Errorf("it %s", state)
	}
	c.Kill()
	for range 2 {
		if err := <-returned; err == nil {
			t.Error("a process that was killed still talks")
		}
	}
	c.Kill() // once more does no harm
	if !c.Ended() || !strings.Contains(c.State(), "has ended") {
		t.Errorf("it %s", c.State())
	}
}

func TestResume_LetsASuspendedChildGoOn(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no process is suspended there")
	}
	c := open(t, "echo", "hello")
	c.hears(t, "hello")
	for range 3 {
		if err := errors.Join(c.Suspend(), c.Send("again"), c.Resume()); err != nil {
			t.Fatal(err)
		}
		c.hears(t, "again")
	}
}

func TestWait_ForAChildThatDoesNotEnd_ReturnsWithTheEndOfItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c := openIn(ctx, t, "deaf", "")
	c.hears(t, "here")
	c.CloseInput() // which it does not notice
	cancel()
	if err := c.Wait(); err == nil || !strings.Contains(err.Error(), "has ended (signal: killed)") {
		t.Errorf("got %v", err)
	}
}

// A pipe holds less than what the process says, which nobody receives.
func TestWait_ForAChildThatStillTalks_Returns(t *testing.T) {
	if err := open(t, "chatty", "").Wait(); err != nil {
		t.Error(err)
	}
}

func TestReceive_WhileAnotherProcessKeepsTheOutputOpen_Returns(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there is no cat")
	}
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer write.Close() // ends the heir
	c := open(t, "heir", "", read)
	if err := read.Close(); err != nil {
		t.Fatal(err)
	}
	<-c.Exited()
	c.hears(t, "the last word")
	if err := c.Receive(new(string)); !errors.Is(err, io.EOF) {
		t.Errorf("got %v, want io.EOF", err)
	}
	if err := c.Wait(); err != nil {
		t.Errorf("it ended in order, but: %v", err)
	}
}

// The system takes the end of the thread that started a process for the end of its parent. Two goroutines are on
// two threads, and only the first thread of a program outlasts its goroutine.
func TestChild_OfAThreadThatHasEnded_LivesOn(t *testing.T) {
	started, both := make(chan *Child, 2), make(chan struct{})
	for range 2 {
		go func() {
			runtime.LockOSThread() // and not unlocked: the thread ends with the goroutine
			started <- open(t, "echo", "hello")
			<-both
		}()
	}
	children := []*Child{<-started, <-started}
	close(both)
	for _, c := range children {
		c.hears(t, "hello")
		for range 100 {
			if err := c.Send("still here"); err != nil {
				t.Fatal(err)
			}
			c.hears(t, "still here")
		}
	}
}

func TestChildren_ThatHaveEnded_LeaveNoGoroutineAndNoFile(t *testing.T) {
	before := residue()
	for _, end := range []func(c *Child){
		(*Child).Kill, func(c *Child) { c.CloseInput(); _ = c.Wait() },
		func(c *Child) { _ = c.Suspend(); c.Kill(); _ = c.Wait() },
	} {
		end(open(t, "echo", "hello"))
		end(open(t, "wrong", ""))
	}
	after := residue()
	for range 1000 {
		// Fewer is no leak: what an earlier test had left to end may have been counted before.
		if after[0] <= before[0] && after[1] <= before[1] {
			return
		}
		time.Sleep(10 * time.Millisecond) // real: a goroutine ends a moment after what it waits for
		after = residue()
	}
	stacks := make([]byte, 1<<16)
	t.Errorf("%v goroutines and files before, %v after:\n%s", before, after, stacks[:runtime.Stack(stacks, true)])
}

// residue counts goroutines, and files where the system tells.
func residue() [2]int {
	files, _ := os.ReadDir("/proc/self/fd") // none elsewhere
	return [2]int{runtime.NumGoroutine(), len(files)}
}
