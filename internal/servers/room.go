package servers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// Namespaces is how INTERLOCK_REQUIRE calls what a [Network] and a [Disk] need.
const Namespaces = "namespaces"

// Apart reports whether this process may make a [Network] and a [Disk], which takes Linux and the rights of root
// (CAP_SYS_ADMIN, and CAP_NET_ADMIN over the network that it is in); otherwise its error says what is missing. In a
// shell of "unshare -Urn" there are enough of them.
func Apart() error { return rights() }

// rights tries it once, because rights do not change.
var rights = sync.OnceValue(func() error {
	if runtime.GOOS != "linux" {
		return fmt.Errorf("namespaces need Linux: %w", errors.ErrUnsupported)
	}
	if _, err := exec.LookPath("ip"); err != nil {
		return fmt.Errorf("no ip on PATH: install iproute2 (%w)", err)
	}
	r, err := newMountRoom()
	if err == nil {
		r.close()
		err = tryNetwork() // all of it: containers may withhold its parts one by one
	}
	if err != nil {
		return fmt.Errorf("namespaces need Linux and the rights of root: %w", err)
	}
	return nil
})

// Waived says why there can be no [Network] and no [Disk] here, if that is so and what needs one may be skipped.
// That may not be where INTERLOCK_REQUIRE lists [Namespaces]; nor where it says "all" and something is missing
// that anybody can add: iproute2, or to run this as root. What a machine withholds from root too, as some
// containers do, nobody can add.
func Waived() error {
	if err := Apart(); err != nil && waives(err, os.Geteuid() == 0) {
		return err
	}
	return nil
}

func waives(missing error, root bool) bool {
	withheld := root && !errors.Is(missing, exec.ErrNotFound) || errors.Is(missing, errors.ErrUnsupported)
	return !Required(Namespaces) && (withheld || !Required("all"))
}

// apart skips t if Apart does not hold, or fails it if that is not allowed.
func apart(t testing.TB) {
	t.Helper()
	if shortOf(Namespaces, "all") {
		t.Skip("it needs namespaces, and -short makes none")
	}
	if err := Waived(); err != nil {
		t.Skip(err)
	}
	if err := Apart(); err != nil {
		t.Fatalf("INTERLOCK_REQUIRE wants %s: %v", Namespaces, err)
	}
}

// room is a thread of this process in namespaces of its own. What it starts and opens is in them as well. They last as
// long as there is anything in them, so they are gone at the latest with this process, however that ends.
type room struct {
	id    int // of the thread
	tasks chan func()
	ended chan struct{} // closed with the thread
}

// do has f done by the thread, which does one thing after the other.
func (r *room) do(f func()) {
	done := make(chan struct{})
	r.tasks <- func() {
		defer close(done) // also if f ends its goroutine
		f()
	}
	<-done
}

// close ends the thread, and with it the processes that it has started.
func (r *room) close() {
	close(r.tasks)
	<-r.ended
}

// start starts a process in the room, or as any other if there is none.
func (r *room) start(cmd *exec.Cmd) (err error) {
	if r == nil {
		return cmd.Start()
	}
	r.do(func() { err = cmd.Start() })
	return err
}

// within does f in the room, or here if there is none.
func (r *room) within(f func()) {
	if r == nil {
		f()
		return
	}
	r.do(f)
}

// ip runs commands of iproute2 in the room, or where everybody is if there is none.
func (r *room) ip(lines ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "ip", "-batch", "-")
	cmd.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\n")
	var out []byte
	var err error
	r.within(func() { out, err = cmd.CombinedOutput() })
	if err != nil {
		return fmt.Errorf("ip: %w: %s", err, out)
	}
	return nil
}

func (r *room) number() string { return strconv.Itoa(r.id) }
