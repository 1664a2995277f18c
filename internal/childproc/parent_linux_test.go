package childproc

import (
	"os"
	"syscall"
	"testing"
	"time"
)

// Who stands still reads no end of its input.
func TestChild_OfAParentThatIsKilled_IsGone(t *testing.T) {
	for _, how := range []string{"running", "suspended"} {
		t.Run(how, func(t *testing.T) {
			read, write, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer read.Close()
			middle := open(t, "middle", how, write)
			if err := write.Close(); err != nil {
				t.Fatal(err)
			}
			var pid int
			if err := middle.Receive(&pid); err != nil {
				t.Fatal(err)
			}
			middle.Kill()
			_ = read.SetReadDeadline(time.Now().Add(20 * time.Second))
			if _, err := read.Read(make([]byte, 1)); os.IsTimeout(err) {
				t.Error("it lives on and has its files open")
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		})
	}
}

func TestSuspend_ReturnsWhenAllThreadsStandStill(t *testing.T) {
	c := open(t, "echo", "hello")
	c.hears(t, "hello")
	for range 5 {
		if err := c.Suspend(); err != nil {
			t.Fatal(err)
		}
		if !stands(c.PID()) {
			t.Error("a process that was suspended runs on")
		}
		if err := c.Resume(); err != nil {
			t.Fatal(err)
		}
	}
}
