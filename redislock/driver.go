// The Driver: construction, traits and Close. The operations are in files of their own, acquire.go first; entry.go has
// what the driver keeps of each request, notices.go what it hears without having asked.

package redislock

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/enginekit"
	"github.com/interlock-go/interlock/redislock/internal/rueidisconn"
	"github.com/redis/rueidis"
)

var (
	_ driver.Driver    = (*Driver)(nil)
	_ driver.Renewer   = (*Driver)(nil)
	_ driver.Requeuer  = (*Driver)(nil)
	_ driver.Converter = (*Driver)(nil)
	_ driver.Inspector = (*Driver)(nil)
	_ driver.Breaker   = (*Driver)(nil)
	_ driver.Diagnoser = (*Driver)(nil)
)

// kinds are those that Acquire accepts. Latches and conditions have calls of their own.
var kinds = []driver.Kind{driver.KindMutex, driver.KindRWMutex, driver.KindSemaphore, driver.KindElection}

// Driver is one client's access to the locks of a Redis deployment. It is safe for concurrent use and must not be
// copied. Its zero value is not usable; [New], [Start], [Connect], [NewConn] and [StartConn] make one.
type Driver struct {
	conn    Conn
	opts    Options
	names   names
	process string // a random word: it names this driver among all, and so its channel
	channel string // where the server pushes grants, breaks and notices for this driver

	closing chan struct{} // closed by Close, under mu; every wait selects on it
	close   sync.Once

	mu      sync.Mutex        // guards what follows; nothing blocks under it
	entries map[string]*entry // by request ID: acquisitions under way, and holds
	// client is the name that operators see, of the latest request. A renewal does not carry it.
	client string
	// marks: some request was marked by markOf. Until then renewals need not look for marked holds.
	marks  bool
	urgent int        // how many entries are urgent; see count
	gone   tombstones // the latest requests that are over
	// unsent are IDs of requests that are still to be undone although nothing of them was sent: 1024 at most. See
	// leave.
	unsent  map[string]struct{}
	watches map[string]map[*watch]struct{} // by KIND:NAME; one key may have several
	slots   slotsInUse                     // where we listen, in a Cluster

	reconnections reconnections

	// presence says that this process is alive, on behalf of the waiters in it. It has a mutex of its own.
	presence presence
	// latest are the releases that a failover may have forgotten. It has a mutex of its own, too.
	latest latestReleases
}

// startTime is how long New waits for a server that hangs.
const startTime = 5 * time.Second

// New returns a driver over client, which may be of any topology. It subscribes to a channel of its own and checks the
// server's set-up as opts say. It blocks for at most 5 seconds; [Start] takes a context instead. Close leaves the
// client open. A nil opts means the defaults.
func New(client rueidis.Client, opts *Options) (*Driver, error) {
	//nolint:forbidigo // as sql.OpenDB, it takes none
	ctx, cancel := context.WithTimeout(context.Background(), startTime)
	defer cancel()
	return Start(ctx, client, opts)
}

// Start is New with a context that bounds the start alone. An error that matches ctx's says that the server has not
// answered by then.
func Start(ctx context.Context, client rueidis.Client, opts *Options) (*Driver, error) {
	if client == nil {
		return nil, errors.New("redis: the client is nil: make one with rueidis.NewClient")
	}
	return start(ctx, rueidisconn.New(client, false), opts)
}

// Conn returns the driver's way to the servers, for packages that keep something of their own beside its locks. Its
// Start has been called. Close closes it too, so the caller must not.
func (d *Driver) Conn() Conn { return d.conn }

// KeyOf returns the key of a lock.
func (d *Driver) KeyOf(lock driver.Key) string {
	name, _ := d.names.lock(lock)
	return name
}

// Judge turns an error of Conn into the error that an operation of this driver would return, for an operation that is
// one part of a larger one. It never says that nothing has happened, because the other parts may have. op is "acquire",
// "renew" or "release".
func (d *Driver) Judge(ctx context.Context, op string, lock driver.Key, err error) error {
	return d.callError(ctx, op, lock, err, true)
}

// ended returns how ctx has ended, or nil. A read with the context's deadline on its socket can return before ctx's own
// timer has run, so the deadline is compared too.
func ended(ctx context.Context) error {
	if end, has := ctx.Deadline(); ctx.Err() == nil && has && !time.Now().Before(end) {
		return context.DeadlineExceeded
	}
	return ctx.Err()
}

// NewConn is New over another client library. Unlike New it sets no time limit of its own.
func NewConn(conn Conn, opts *Options) (*Driver, error) {
	return start(context.Background(), conn, opts) //nolint:forbidigo // see New
}

// StartConn is NewConn for as long as ctx lasts: when it ends before the server has answered, it returns ctx's error.
func StartConn(ctx context.Context, conn Conn, opts *Options) (*Driver, error) {
	return start(ctx, conn, opts)
}

// start makes a driver over conn. If it fails it closes conn, in the background when ctx has ended. The check comes
// after conn.Start, whose connections it needs.
func start(ctx context.Context, conn Conn, opts *Options) (*Driver, error) {
	if conn == nil {
		return nil, errors.New("redis: the connection is nil")
	}
	o, err := opts.withDefaults()
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	d := &Driver{
		conn: conn, opts: o, names: names{o.Prefix}, process: strings.ToLower(rand.Text()),
		closing: make(chan struct{}),
		entries: make(map[string]*entry),
	}
	d.channel = d.names.channel(d.process)
	// The listener is passed before anything is sent, so no push can come to nobody.
	err = conn.Start(ctx, d.channel, (*listener)(d))
	if err == nil {
		err = d.checkAtStart(ctx)
	}
	if err != nil {
		err = d.failed(err)
		// Closing may take longer than ctx lasts, and nothing is held yet.
		enginekit.CloseWithin(ctx, conn.Close)
		return nil, err
	}
	return d, nil
}

// Traits describes the engine.
func (d *Driver) Traits() driver.Traits {
	return driver.Traits{
		Engine: "redis", Lifetime: driver.Leases, QueueTimeout: mostQueued, Resumes: true,
		Kinds: append(slices.Clone(kinds), driver.KindLatch, driver.KindCond),
	}
}

// Close ends all waits with driver.ErrClosed and gives the connections back. Holds are not released: they end with
// their leases.
func (d *Driver) Close() error {
	var err error
	d.close.Do(func() {
		d.mu.Lock()
		clear(d.entries) // nobody is told anything any more
		// Under mu, so that enter and keep cannot register anything after the entries were cleared.
		close(d.closing)
		clear(d.reconnections.heed)
		if d.reconnections.timer != nil {
			d.reconnections.timer.Stop()
		}
		d.mu.Unlock()
		d.presence.stop()
		d.latest.stop()
		err = d.conn.Close()
	})
	return err
}

// isClosed may be called with or without Driver.mu.
func (d *Driver) isClosed() bool {
	select {
	case <-d.closing:
		return true
	default:
		return false
	}
}
