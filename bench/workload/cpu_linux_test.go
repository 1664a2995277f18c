package workload

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"testing"
)

// burnerVar marks a process as a burner of a test.
const burnerVar = "INTERLOCK_BENCH_BURNER"

// burning is how many nanoseconds a burner runs each time.
const burning = 20e6

// As of PostgreSQL only what the main thread starts is looked for, which is here while packages are initialised.
func init() {
	if os.Getenv(burnerVar) == "" {
		return
	}
	runtime.LockOSThread()
	if err := burn(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// burn does what it reads until nothing more comes, and answers each time: it runs, starts a child that has run before
// the answer, or ends the first one.
func burn(in io.Reader, out io.Writer) error {
	var children []*burner
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		var err error
		switch lines.Text() {
		case "run":
			for begin := ownCPU(); ownCPU()-begin < burning; {
			}
		case "start":
			var b *burner
			if b, err = startBurner(); err == nil {
				children = append(children, b)
				err = b.do("run")
			}
		case "end":
			err = children[0].end()
			children = children[1:]
		}
		if err != nil {
			return err
		}
		fmt.Fprintln(out, lines.Text())
	}
	err := lines.Err()
	for _, b := range children {
		err = errors.Join(err, b.end())
	}
	return err
}

// burner is a process that runs when it is told.
type burner struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

func startBurner() (*burner, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self) // it ends with its standard input
	cmd.Env = append(os.Environ(), burnerVar+"=1")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &burner{cmd, in, bufio.NewScanner(out)}, cmd.Start()
}

// do returns when the burner has done it all.
func (b *burner) do(all ...string) error {
	for _, what := range all {
		if _, err := fmt.Fprintln(b.in, what); err != nil {
			return err
		}
		if !b.out.Scan() || b.out.Text() != what {
			return fmt.Errorf("%q is answered %q, %w", what, b.out.Text(), errors.Join(b.out.Err(), io.EOF))
		}
	}
	return nil
}

func (b *burner) end() error {
	err := b.in.Close()
	return errors.Join(err, b.cmd.Wait())
}

func TestCPUUsage_ChildThatEndsMeanwhile_TakesNothingAway_AndANewOneCounts(t *testing.T) {
	server, err := startBurner()
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := server.end(); err != nil {
			t.Error(err)
		}
	}()
	must := func(all ...string) {
		t.Helper()
		if err := server.do(all...); err != nil {
			t.Fatal(err)
		}
	}
	must("start", "start")
	b := startCPUUsage([]int{server.cmd.Process.Pid})
	if len(b.its) != 3 {
		t.Fatalf("%d processes, want one and its two children", len(b.its))
	}
	must("run", "end")
	if _, its := b.spent(); its < burning {
		t.Errorf("%v ns, want at least %v of the process whose child has ended", its, burning)
	}
	must("start")
	if _, its := b.spent(); its < 2*burning {
		t.Errorf("%v ns, want at least %v of the process and its new child", its, 2*burning)
	}
	if begin := startCPUUsage([]int{server.cmd.Process.Pid}); len(begin.its) != 3 {
		t.Errorf("%d processes, want one and its two children", len(begin.its))
	}
}

func TestClocks_Since_CountsByProcess(t *testing.T) {
	before := clocks{1: 100, 2: 5000, 3: 70}
	for _, row := range []struct {
		name string
		now  clocks
		want float64
	}{
		{"all went on", clocks{1: 110, 2: 5001, 3: 70}, 11},
		{"one has ended", clocks{1: 110, 3: 75}, 15},
		{"one has begun", clocks{1: 100, 2: 5000, 3: 70, 4: 30}, 30},
		{"another one has the number", clocks{1: 100, 2: 40, 3: 70}, 40},
		{"all have ended", nil, 0},
	} {
		if got := row.now.since(before); got != row.want {
			t.Errorf("%s: %v, want %v", row.name, got, row.want)
		}
	}
}
