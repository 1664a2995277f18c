package workload

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/interlock-go/interlock/bench/peer"
)

// Run does one measurement in processes of its own and returns when all of them have ended. When ctx ends they are killed.
func Run(ctx context.Context, peers []peer.Spec, j Job) (r Result, err error) {
	if j.Kind != Held {
		spec, err := find(peers, j.Peer)
		if err == nil {
			err = j.check(spec)
		}
		if err != nil {
			return r, err
		}
	}
	j.Processes = max(j.Processes, 1)
	if j.Dir, err = os.MkdirTemp(j.Dir, "interlock-bench-"); err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(j.Dir)) }()
	w, err := openWitness(witnessPath(j.Dir))
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	parts, err := together(ctx, &j)
	if err != nil {
		return r, fmt.Errorf("%s of %s: %w", j.Kind, j.Peer, err)
	}
	return merge(parts, w.seen())
}

// together starts the processes, lets them begin at one instant, and collects what they return.
func together(ctx context.Context, j *Job) (parts []*part, err error) {
	ctx, cancel := context.WithCancel(ctx)
	var children []*child
	defer func() {
		if err != nil {
			cancel() // kills them, so that the waits below end
		}
		for _, c := range children {
			if waitErr := c.cmd.Wait(); err == nil && waitErr != nil {
				err = waitErr
			}
		}
		cancel()
	}()
	for range j.Processes {
		c, err := start(ctx, j)
		if err != nil {
			return nil, err
		}
		children = append(children, c)
	}
	for _, c := range children { // each has opened its peer
		if _, err := c.receive(); err != nil {
			return nil, err
		}
	}
	at := begin{At: time.Now().Add(j.Warm).UnixNano()}
	for _, c := range children {
		if err := c.out.Encode(at); err != nil {
			return nil, err
		}
	}
	for _, c := range children {
		p, err := c.receive()
		if err != nil {
			return nil, err
		}
		parts = append(parts, p)
	}
	return parts, nil
}

// child is a process under way. It lives as long as its standard input is open, which Wait closes when it has ended.
type child struct {
	cmd *exec.Cmd
	out *json.Encoder
	in  *json.Decoder
}

func start(ctx context.Context, j *Job) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), childVar+"=1")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	c := &child{cmd: cmd, out: json.NewEncoder(in), in: json.NewDecoder(out)}
	// A child that ends before it has read this says why in its reply, or by its exit.
	_ = c.out.Encode(j)
	return c, nil
}

// receive waits for the child's next message.
func (c *child) receive() (*part, error) {
	var r reply
	if err := c.in.Decode(&r); errors.Is(err, io.EOF) {
		return nil, errors.New("a worker process ended without an answer")
	} else if err != nil {
		return nil, err
	}
	if r.Err != "" {
		return nil, errors.New(r.Err)
	}
	return r.Part, nil
}

// merge makes one result of what the processes returned. seen is how many steps the witness has counted.
func merge(parts []*part, seen int64) (Result, error) {
	r := Result{PerOp: parts[0].PerOp, Held: parts[0].Held}
	var all int64
	for _, p := range parts {
		var sum int64
		for _, n := range p.Counts {
			sum += n
			if len(parts) == 1 {
				r.Shares = append(r.Shares, float64(n))
			}
		}
		if len(parts) > 1 {
			r.Shares = append(r.Shares, float64(sum))
		}
		if p.Seconds > 0 {
			r.Rate += float64(sum) / p.Seconds
		}
		r.Wait.Merge(&p.Wait)
		all += p.All
	}
	if all != seen {
		return r, fmt.Errorf("%w: of %d steps inside, %d were lost", ErrOverlap, all, all-seen)
	}
	return r, nil
}
