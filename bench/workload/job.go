// Package workload does what is measured: processes and goroutines that want one lock, one goroutine alone, and very
// many locks held at once. All of it runs in processes of its own, which are this same program started again, so that
// the threads, the heap and the collector of one measurement do not meet the next.
package workload

import (
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/bench/peer"
	"github.com/interlock-go/interlock/bench/stats"
)

// Kind is a sort of measurement.
type Kind string

// The kinds.
const (
	Contend Kind = "contend" // many want the lock
	Serial  Kind = "serial"  // one takes and releases it, again and again

	// On a server only.
	Turns   Kind = "turns"   // as Serial, by several peers in turns
	Handoff Kind = "handoff" // two processes pass the lock to each other
	Herd    Kind = "herd"    // many clients wait for it, and all get it once
	Recall  Kind = "recall"  // one process gives up lock after lock, and the other one gets each
	Keep    Kind = "keep"    // many locks are held at once, and renewed
)

// Job is one measurement of one peer.
type Job struct {
	Kind Kind
	Peer string        // name of a peer.Spec
	Dir  string        // where the run's folder is made; "" is the system's folder for temporary files
	Time time.Duration // how long is measured
	Warm time.Duration // how long the same goes on before and after that

	Redis  string // host:port of the server, which the run empties first; "" if there is none
	Far    string // host:port of the way by which peers reach that server, if it is another one
	Server string // host:port of the server of another engine, for peers that have one
	// PIDs are the server's processes, whose time on processors counts; none if that cannot be told;
	// with Redis, Run sets it.
	PIDs []int

	Index int // which of the job's processes this is; Run sets it

	// Of Contend.
	Processes  int
	Goroutines int           // of each process
	Hold       time.Duration // busy work inside, or idle time if Sharing
	Every      int           // of how many acquisitions one is timed; 0 means every one
	Distinct   bool          // each goroutine has a lock of its own
	Sharing    peer.Sharing  // who may be inside together

	// Of Turns.
	Peers []string // in place of Peer
	Seed  uint64   // of the order of turns
	Apart bool     // client and server each stay on a processor of their own

	// Of Handoff.
	Quiet   time.Duration // how long is listened to one who holds and one who waits
	Arrives time.Duration // how long a request is on its way to Far, at most: until then nobody waits who has asked

	// Of Herd, which has Processes with as many clients each as Goroutines says.
	Limit   time.Duration // of each wait
	Shared  bool          // the waiters of a process share clients
	Clients int           // how many of them; 0 is one
	Times   int           // how often each takes the lock; 0 is once
	Stagger time.Duration // between the calls of two clients, which open connections for a wait with some engines

	// Of Keep.
	Locks    int
	Lease    time.Duration
	Renewals int           // how many leases long it is counted
	Settle   time.Duration // from the last acquisition until it is counted; 0 is a lease
}

// times is how often each of a Herd takes the lock.
func (j *Job) times() int { return max(j.Times, 1) }

// place is where the job's peers find their lock.
func (j *Job) place() peer.Place {
	at := peer.Place{Dir: j.Dir, Redis: j.Redis, Server: j.Server, Lease: j.Lease}
	if j.Far != "" {
		at.Redis = j.Far
	}
	return at
}

// Result is what a Job has measured.
type Result struct {
	// Of Contend. A share is what one process got of the acquisitions, or one goroutine if there is one process.
	Rate   float64 // acquisitions a second
	Shares []float64
	Wait   stats.Histogram // of Turns: the times of single acquisitions with their releases
	Cut    int             // waits that went on a second after the end, and were ended then

	// Commands is what clients sent to the server for each acquisition, without pings.
	Commands float64

	// Scripts is how many nanoseconds a Redis ran scripts for each acquisition with its release.
	Scripts float64

	// Of Serial.
	PerOp float64 // nanoseconds of one acquisition with its release

	// Of Contend and Serial: nanoseconds of one acquisition with its release on processors, in the clients' processes
	// and in the server's; zero if it is not known.
	CPU, ServerCPU float64

	// RoundTrips is, of Turns, how often a client asks the server and waits for one acquisition with its release; zero
	// with Far.
	RoundTrips float64

	// RoundTrip is how many nanoseconds a bare request through Far takes, with its answer; zero without Far.
	RoundTrip float64

	Turns map[string]Turn // by peer

	// Of the kinds of that name.
	Handoff *HandoffResult
	Herd    *HerdResult
	Keep    *KeepResult
}

// ErrOverlap says that two were inside at once: what was measured is no lock.
var ErrOverlap = errors.New("two held the lock at once")

// check refuses a job that cannot be done with that peer.
func (j *Job) check(p *peer.Spec) error {
	if j.Kind == Contend && (j.Processes < 1 || j.Goroutines < 1) {
		return fmt.Errorf("%d processes with %d goroutines each cannot contend", j.Processes, j.Goroutines)
	}
	if j.Kind == Contend && p.Shares != peer.Nobody && p.Shares != j.Sharing {
		return fmt.Errorf("peer %s lets %s in together, and the job wants another lock", j.Peer, p.Shares)
	}
	if j.Processes > 1 && p.Alone {
		return fmt.Errorf("peer %s excludes nobody outside of its process, so it cannot run in %d", j.Peer, j.Processes)
	}
	if p.Redis && j.Redis == "" || p.Engine != "" && j.Server == "" {
		return fmt.Errorf("peer %s needs a server", j.Peer)
	}
	if j.Kind == Keep && j.Processes > 1 {
		return errors.New("only one process can keep locks of the same names")
	}
	if (j.Kind == Handoff || j.Kind == Recall) && j.Processes != 2 {
		return fmt.Errorf("%d processes cannot pass a lock to each other", j.Processes)
	}
	return nil
}

// find returns the peer of that name.
func find(peers []peer.Spec, name string) (*peer.Spec, error) {
	for i := range peers {
		if peers[i].Name == name {
			return &peers[i], nil
		}
	}
	return nil, fmt.Errorf("there is no peer %q", name)
}
