// The Driver: construction, traits and Close. session.go has its lease, listener.go its watches; acquire.go begins the
// walk of a request.
//
// The order of an end is fixed. Close first refuses new calls and forgets the entries, then ends d.life, then waits for
// the users' calls and for its own goroutines, and revokes the lease last. A goroutine that outlives the call in which
// it began is started by spawn, by start or by the listener, so Close leaves none behind.

package etcdlock

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

var (
	_ driver.Driver    = (*Driver)(nil)
	_ driver.Renewer   = (*Driver)(nil)
	_ driver.Requeuer  = (*Driver)(nil)
	_ driver.Inspector = (*Driver)(nil)
	_ driver.Breaker   = (*Driver)(nil)
	_ driver.Diagnoser = (*Driver)(nil)
)

// kinds are those that Acquire accepts.
var kinds = []driver.Kind{driver.KindMutex, driver.KindRWMutex, driver.KindSemaphore, driver.KindElection}

// onlyOne reports whether locks of kind k have one holder, whatever the mode. Their waiters watch the key right before
// their own.
func onlyOne(k driver.Kind) bool { return k == driver.KindMutex || k == driver.KindElection }

// Driver is one client's access to the locks of an etcd cluster. It has one session (an etcd lease) at a time, whose
// end ends its holds; then it makes another, and can be used as before. It is safe for concurrent use and must not be
// copied. [New] and URLs make one.
type Driver struct {
	client   *clientv3.Client
	owns     bool // the client is closed with the driver
	several  bool // there are several endpoints
	leases   pb.LeaseClient
	opts     Options
	names    names
	listener *listener     // has all watches on one stream
	timeout  time.Duration // of the first session, as granted; constant once New has returned
	born     time.Time     // monotonic; sessions count their instants from here

	life context.Context //nolint:containedctx // ends with Close
	stop context.CancelFunc
	// background are goroutines that end with life, or with a bounded request. It is joined only under mu while life
	// goes on, so that Close can wait for it.
	background sync.WaitGroup
	calls      sync.WaitGroup // users' calls; likewise

	// mu guards what follows, and fields elsewhere whose comments say so. Nothing blocks under it, and no code of the
	// user runs under it.
	mu      sync.Mutex
	closed  bool
	current *session // that of new requests; nil if there is none
	// sessions are those that are not lost: the current one, and those that were retired; see session.go.
	sessions map[*session]struct{}
	making   *making // nil if no session is being made
	entries  map[holdID]*entry
	gone     tombstones // requests that are over
	tombs    []tomb     // keys on the servers that must be removed later
	sweeps   bool       // a goroutine removes them
}

// New returns a driver over client, with a session of its own. It blocks until there is a session or ctx ends; ctx
// bounds nothing else. Close leaves the client open. A nil opts means the defaults.
//
// The client's own settings for retries, timeouts and keepalive matter little, because the driver bounds each of its
// requests. But with grpc's own backoff it may take up to two minutes to notice that a server has come back;
// [grpc.WithConnectParams] sets that. By default grpc also measures how much may be under way, with a question beside
// every answer; with [grpc.WithStaticConnWindowSize] it does not, and a lock costs less. A client with a user and
// password needs [KeepLoggedIn], or it fails for good once servers before etcd 3.5 have forgotten its token. Clients
// that are opened by URL have all three.
//
// [grpc.WithConnectParams]: https://pkg.go.dev/google.golang.org/grpc#WithConnectParams
// [grpc.WithStaticConnWindowSize]: https://pkg.go.dev/google.golang.org/grpc#WithStaticConnWindowSize
func New(ctx context.Context, client *clientv3.Client, opts *Options) (*Driver, error) {
	if client == nil {
		return nil, errors.New("etcd: there is no client: make one with clientv3.New")
	}
	return start(ctx, client, opts, false)
}

// start makes a driver over client. If owns is set, the driver closes the client with itself, and also if start fails.
func start(ctx context.Context, client *clientv3.Client, opts *Options, owns bool) (*Driver, error) {
	d := &Driver{
		client: client, owns: owns, several: len(client.Endpoints()) > 1,
		leases: pb.NewLeaseClient(client.ActiveConnection()),
		born:   time.Now(), entries: make(map[holdID]*entry), sessions: make(map[*session]struct{}),
	}
	// WithoutCancel, because ctx bounds the start alone.
	d.life, d.stop = context.WithCancel(context.WithoutCancel(ctx))
	var err error
	if d.opts, err = opts.withDefaults(); err != nil {
		_ = d.Close()
		return nil, err
	}
	d.names = names{d.opts.Prefix}
	d.listener = newListener(pb.NewWatchClient(client.ActiveConnection()), pulseFor(d.opts.Session))
	d.background.Go(func() { d.listener.run(d.life) })
	s, err := d.session(ctx)
	if err != nil {
		_ = d.Close()
		return nil, err
	}
	// Traits must be constant, but a later session may be granted another timeout, if the servers were configured anew.
	// Trust uses the session's own.
	d.timeout = s.timeout
	return d, nil
}

// Traits describes the engine.
func (d *Driver) Traits() driver.Traits {
	return driver.Traits{
		Engine: "etcd", Lifetime: driver.Sessions, Timeout: d.timeout, Resumes: true, Kinds: slices.Clone(kinds),
		Unsupported: []driver.Unsupported{
			{Ability: driver.NamedOwners, Reason: "a key belongs to one lease, so a hold cannot be shared with " +
				"another process"},
			{Ability: driver.Resizing, Reason: "each key keeps the limit that it was asked with, and none is the " +
				"semaphore's"},
			{Ability: driver.Conversion, Reason: "the revision of a key is its place in the queue, so an upgrade " +
				"cannot go to the front"},
			{Ability: driver.LockDelays, Reason: "a key is deleted with its session, and nothing stays that could " +
				"keep others out"},
			{
				Ability: driver.Ability(driver.KindLatch),
				Reason:  "what it keeps belongs to a session, and a latch to nobody",
			},
			{
				Ability: driver.Ability(driver.KindCond),
				Reason:  "a key stands in one queue, and cannot be moved to another in one step",
			},
		},
	}
}

// closingTime bounds the revocation of the session's lease by Close. A program that ends must not hang because the
// servers do; the lease then runs out by itself, at most one timeout later.
const closingTime = 500 * time.Millisecond

// Close ends all waits with driver.ErrClosed, and revokes the session's lease: what it holds becomes free at once, or
// when the lease ends if the servers do not answer within half a second. It blocks until all goroutines of the driver
// have ended.
func (d *Driver) Close() error {
	d.mu.Lock()
	first := !d.closed
	d.closed = true
	clear(d.entries) // nobody is told anything any more
	d.mu.Unlock()
	if !first {
		return nil
	}
	// Calls and goroutines end first: none may put a key into the lease after its revocation.
	d.stop()
	d.calls.Wait()
	d.background.Wait()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(d.life), closingTime)
	defer cancel()
	// Nobody changes the set any more.
	for s := range d.sessions {
		_, _ = d.client.Revoke(ctx, s.id) // if that fails, it runs out by itself
	}
	return d.closeClient()
}

// closeClient closes the client, if it is the driver's.
func (d *Driver) closeClient() error {
	if !d.owns {
		return nil
	}
	_ = d.client.Close() // its only error is that of its own context, which it has ended itself
	return nil
}

// isClosed reports whether Close was called.
func (d *Driver) isClosed() bool { return d.life.Err() != nil }

// spawn runs f in a goroutine that Close waits for, unless the driver is closed. The caller holds Driver.mu. The mutex
// is what makes that safe: a WaitGroup must not be joined from zero while somebody waits for it, and Close sets closed
// under the same mutex before it waits.
func (d *Driver) spawn(f func()) {
	if !d.closed {
		d.background.Go(f)
	}
}

// enterCall returns a context for a user's call that ends with ctx and with the driver. The caller must call leave. A
// call that is let in may still send a request for as long as bounded lives, which is why Close waits for leave and not
// only for the end of the context.
func (d *Driver) enterCall(ctx context.Context) (bounded context.Context, leave func(), err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, nil, driver.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	// The call is counted under the mutex, so that Close, which sets closed under it, waits for every call that was let
	// in.
	d.calls.Add(1)
	bounded, cancel := context.WithCancel(ctx)
	forget := context.AfterFunc(d.life, cancel)
	// forget must be called too, or the driver would keep a function for each call that has ended.
	return bounded, func() {
		forget()
		cancel()
		d.calls.Done()
	}, nil
}
