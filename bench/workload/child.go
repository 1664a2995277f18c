package workload

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/interlock-go/interlock/bench/peer"
	"github.com/interlock-go/interlock/bench/stats"
	"github.com/interlock-go/interlock/internal/childproc"
)

// role is what the program is started again for.
const role = "bench/workload"

// begin is the second message to a child; the first is its Job.
type begin struct {
	At int64 // when counting begins, in nanoseconds of the wall clock, which all processes of a machine share
}

// end is the third: everybody's result is there. Until then a child keeps its peer, because a server may end what it
// has for a session together with it, and then nobody can tell any more what that has cost.
type end struct{}

// reply is a message from a child: first that it is ready, then its part of the result; or an error in place of either.
type reply struct {
	Err  string `json:",omitempty"`
	Part *part  `json:",omitempty"`
}

// part is one process's part of a Result.
type part struct {
	Seconds float64 // how long its window was
	Counts  []int64 // acquisitions in the window, by goroutine
	CPU     float64 // nanoseconds on processors in the window; of Serial, for each acquisition
	Cut     int
	All     int64 // acquisitions at any time
	Wait    stats.Histogram
	PerOp   float64
	Handoff *HandoffResult
	Herd    *herdPart
	Keep    *KeepResult
	Turns   map[string]Turn

	RoundTrip float64 // of Turns

	// of Herd, for as long as the process has its part: the collector closes connections that nobody has any more
	members []member
}

// ServeIfChild does a child's work and ends the process if a run has started it; otherwise it does nothing. A program
// that calls [Run] calls it first.
func ServeIfChild(peers []peer.Spec) {
	parent, _, is := childproc.Serve(role)
	if !is {
		return
	}
	if err := serve(context.Background(), peers, parent); err != nil {
		fmt.Fprintln(os.Stderr, "bench: worker:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// serve reads the job, says that it is ready, waits for the beginning, sends the result, and waits for the end.
func serve(ctx context.Context, peers []peer.Spec, parent *childproc.Conn) error {
	var j Job
	if err := parent.Receive(&j); err != nil {
		return err
	}
	spec, p, err := open(ctx, peers, &j)
	if err != nil {
		return errors.Join(err, parent.Send(reply{Err: err.Error()}))
	}
	if err := parent.Send(reply{}); err != nil {
		return err
	}
	var b begin
	if err := parent.Receive(&b); err != nil {
		return err
	}
	// The parent never closes its end while it is alive and wants the result. The system does when it has died, and
	// then nobody must go on holding the lock and the processor.
	ended := make(chan struct{})
	go func() {
		if parent.Receive(&end{}) != nil {
			os.Exit(3)
		}
		close(ended)
	}()
	result, err := work(ctx, peers, spec, p, &j, time.Now().Add(time.Until(time.Unix(0, b.At))))
	leave := func() error { return nil }
	if p != nil {
		leave = p.Close
	}
	if err != nil {
		err = errors.Join(err, leave())
		return errors.Join(err, parent.Send(reply{Err: err.Error()}))
	}
	if err := parent.Send(reply{Part: result}); err != nil {
		return err
	}
	<-ended
	runtime.KeepAlive(result)
	return leave()
}

// open opens the job's peer. Herd and Turns open many by themselves.
func open(ctx context.Context, peers []peer.Spec, j *Job) (*peer.Spec, peer.Peer, error) {
	if j.Kind == Turns {
		return nil, nil, nil
	}
	spec, err := find(peers, j.Peer)
	if err != nil || j.Kind == Herd {
		return spec, nil, err
	}
	p, err := spec.Open(ctx, j.place())
	return spec, p, err
}

func work(
	ctx context.Context, peers []peer.Spec, spec *peer.Spec, p peer.Peer, j *Job, start time.Time,
) (*part, error) {
	switch j.Kind {
	case Turns:
		return turns(ctx, peers, j)
	case Handoff:
		return handoff(ctx, p, j, spec.Sends)
	case Recall:
		return recall(ctx, spec, p, j)
	case Herd:
		return herd(ctx, spec, j)
	case Keep:
		return keep(ctx, p, j, spec.Sends)
	case Serial:
		return serial(ctx, p, j)
	case Contend:
		w, err := openWitness(witnessPath(j.Dir))
		if err != nil {
			return nil, err
		}
		result, err := contend(ctx, p, j, w, start)
		return result, errors.Join(err, w.close())
	}
	return nil, fmt.Errorf("there is no kind of job %q", j.Kind)
}

// witnessPath is where the witness of a run lies. The name is not that of a lock.
func witnessPath(dir string) string { return filepath.Join(dir, ".witness") }
