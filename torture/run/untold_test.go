package run

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/interlock-go/interlock/internal/servers"
	"github.com/interlock-go/interlock/torture/target"
)

// A client that is not told hears nothing while the fault is done, which is short, and what was said meanwhile when a
// lease is over. Of other faults everybody hears at once.
func TestUntold_AClientHearsNothing_UntilALeaseIsOver(t *testing.T) {
	echo, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = echo.Close() })
	go func() { // ends with the connection
		if c, err := echo.Accept(); err == nil {
			_, _ = io.Copy(c, c)
			_ = c.Close()
		}
	}()
	way := servers.NewProxy(t, echo.Addr().String())
	c, err := net.Dial("tcp", way.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	says := func(patience time.Duration) error {
		if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
			t.Error(err)
		}
		if _, err := c.Write([]byte{1}); err != nil {
			t.Error(err)
		}
		_, err := c.Read(make([]byte, 1))
		return err
	}
	lease := 400 * time.Millisecond
	n := &nemesis{
		run: &run{Config: &Config{Target: &target.Target{Untold: []target.Fault{target.Sessions}}}, lease: lease},
	}
	victim := &process{links: links{way}}
	for _, fault := range []target.Fault{target.ServerStop, target.Sessions} {
		untold := fault == target.Sessions
		patience := time.Minute // what is to be heard may be late on a busy machine
		if untold {
			patience = lease / 4
		}
		begun, dark, lasted := time.Now(), false, time.Duration(0)
		if err := n.untold(t.Context(), fault, time.Minute, victim, func(lasts time.Duration) error {
			dark, lasted = errors.Is(says(patience), os.ErrDeadlineExceeded), lasts
			return nil
		}); err != nil {
			t.Error(err)
		}
		if dark != untold || (lasted < lease) != untold || untold && time.Since(begun) < lease {
			t.Errorf("%s: nothing was heard: %v; it was to last %v, and was over after %v",
				fault, dark, lasted, time.Since(begun))
		}
		if err := says(time.Minute); err != nil {
			t.Errorf("after %s: %v", fault, err)
		}
	}
}
