//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd || windows

package filelock

import (
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// The driver: one folder, and a table of requests under way and holds. Acquire goes on in acquire.go, Release in
// release.go.

var (
	_ driver.Driver    = (*Driver)(nil)
	_ driver.Inspector = (*Driver)(nil)
	_ driver.Diagnoser = (*Driver)(nil)
)

// Driver keeps locks as files of one folder. Several drivers, of one process or of many, that are given the same folder
// exclude each other. It is safe for concurrent use and must not be copied.
type Driver struct {
	dir    string // absolute
	looks  bool   // Options.ReadOnly
	logger *slog.Logger
	now    func() time.Time // the wall clock, if tests set it; nil otherwise
	pid    uint32           // for records: who wrote them
	pace   pace             // usualPace but in tests

	closing sync.Once
	// Acquires between begin and settle, and ends of holds: Close waits for them. Add is called under mu, before
	// closed.
	running sync.WaitGroup

	interrupter func() *interrupter // made at the first wait; it returns nil where waits poll
	sleepers    atomic.Int32        // waits that sleep in the kernel; see maxSleepers
	foreign     foreigners          // the list of all flocks of the machine, at most a second old

	// Guards what follows. No system call that may wait is made under it.
	mu       sync.Mutex
	closed   bool
	attempts map[string]*attempt // by request ID: Acquires under way, and holds
	gone     tombstones          // the IDs that must not be granted again
	idle     idleFiles           // open files without a hold
}

// New returns a driver for the folder dir, which it creates with mode 0700 if it is missing. It returns an error that
// says what to do if this process may not create files there. A nil opts means the defaults. It takes no lock, and
// starts no goroutine.
func New(dir string, opts *Options) (*Driver, error) {
	looks := opts != nil && opts.ReadOnly
	abs, err := openFolder(dir, looks)
	if err != nil {
		return nil, err
	}
	return &Driver{
		dir:         abs,
		looks:       looks,
		logger:      opts.logger(),
		pid:         uint32(os.Getpid()),
		pace:        usualPace(),
		foreign:     foreigners{list: flockHolders},
		interrupter: sync.OnceValue(newInterrupter),
		attempts:    make(map[string]*attempt),
	}, nil
}

// Traits describes the engine.
func (d *Driver) Traits() driver.Traits { return traits(tellsHolders) }

// Close ends all holds and all waits: Acquires that wait return an error matching driver.ErrClosed. It returns when
// they have, which is at once, and leaves no descriptor and no goroutine. The exception is one that is just reading the
// list of all locks of the machine, and ends with that. Holds whose descriptor was handed out by File end too. A
// Release that comes later finds no hold.
func (d *Driver) Close() error {
	d.closing.Do(func() {
		d.mu.Lock()
		d.closed = true
		for _, a := range d.attempts {
			a.stop(driver.ErrClosed)
		}
		d.mu.Unlock()
		// Without mu: the Acquires that were stopped need it to leave.
		d.running.Wait()
		for _, f := range d.takeAll() {
			f.close()
		}
	})
	return nil
}

// takeAll empties the driver and returns the files to close.
func (d *Driver) takeAll() []*lockFile {
	d.mu.Lock()
	defer d.mu.Unlock()
	files := d.idle.clear()
	for id, a := range d.attempts {
		files = append(files, a.file)
		delete(d.attempts, id)
	}
	return files
}
