// The options of a driver and their checks. New and url.go fill them in; nothing changes them after that.

package mysqllock

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"sync"
	"time"

	"github.com/interlock-go/interlock/enginekit"
)

// Options configures a driver. The zero value and nil mean the same.
type Options struct {
	// Table holds the tokens, one row for each lock; another table is named after it, with _breaks at the end. All
	// clients of one set of locks need the same table in the same database. The default is "interlock".
	Table string

	// Timeout is how long a session lasts without a sign of life: after that the server ends it, and its holds. It is
	// rounded up to whole seconds, in which the server counts. A URL takes it from the client's Lease. The default is
	// 30 s.
	Timeout time.Duration

	// Shared is how many connections hold the locks that were free when they were asked for. Each runs one statement at
	// a time, so with too few many goroutines wait for each other. They are opened as they are needed. The default is
	// 4.
	Shared int

	// Waits is how many connections wait in the server, one for each lock that is waited for or was got by waiting. A
	// wait beyond that number asks again and again instead, and is served in no order. The default is 16.
	Waits int

	// Slice is how long one statement waits. Then the wait begins anew, at the end of the server's queue. The server
	// notices that a waiting client has vanished only when that gets the lock or its slice is over, so a long slice
	// keeps the connections of dead clients; a short one loses the order of coming more often. The default is 1 minute,
	// the least 10 ms.
	Slice time.Duration

	// ReadOnly is for programs that only look: New makes no tables, the driver needs no right but SELECT, removes no
	// old rows, and refuses Acquire. Without tables there are no locks. Break is not refused, since an operator asks
	// for it by name: it needs the right to INSERT. In a URL it is readonly=true. The default is false.
	ReadOnly bool

	// Check says what to do with the findings of the start-up check. The default is CheckWarn.
	Check CheckPolicy

	// Logger gets the findings of the start-up check. The default discards.
	Logger *slog.Logger

	_ struct{}
}

// CheckPolicy says what New does with a server that is not set up for locks.
type CheckPolicy = enginekit.CheckPolicy

const (
	// CheckWarn logs findings. A server on which GET_LOCK does not exclude (Galera, several primaries) is refused
	// nevertheless, because two clients would hold one lock.
	CheckWarn CheckPolicy = enginekit.CheckWarn
	// CheckRefuse makes New fail if a finding says that locks would not keep their guarantees.
	CheckRefuse CheckPolicy = enginekit.CheckRefuse
	// CheckNone logs nothing. What CheckWarn refuses is refused all the same.
	CheckNone CheckPolicy = enginekit.CheckNone
)

const (
	defaultTable   = "interlock"
	defaultTimeout = 30 * time.Second
	defaultShared  = 4
	defaultWaits   = 16
	defaultSlice   = time.Minute

	longestTimeout  = 24 * 24 * time.Hour // servers on Windows take no more for wait_timeout
	longestSlice    = 24 * time.Hour
	mostConnections = 1000
)

// tableName matches names that need no quotes, and are the same on servers that do not tell upper from lower case.
var tableName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z_][a-z0-9_]{0,49}$`) })

// withDefaults returns a checked copy of o, which may be nil.
func (o *Options) withDefaults() (Options, error) {
	var c Options
	if o != nil {
		c = *o
	}
	c.Table = cmp.Or(c.Table, defaultTable)
	c.Timeout = cmp.Or(c.Timeout, defaultTimeout)
	c.Shared = cmp.Or(c.Shared, defaultShared)
	c.Waits = cmp.Or(c.Waits, defaultWaits)
	c.Slice = cmp.Or(c.Slice, defaultSlice)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c, c.validate()
}

// validate checks o, whose defaults are filled in, and rounds the timeout up.
func (o *Options) validate() error {
	switch {
	case !tableName().MatchString(o.Table):
		return fmt.Errorf("mysql: the table %q must be lower-case letters, digits and _, at most 50, and begin with "+
			"no digit", o.Table)
	case o.Timeout < 0 || o.Timeout > longestTimeout:
		return fmt.Errorf("mysql: the session's timeout must be from 0 to %v, not %v", longestTimeout, o.Timeout)
	case o.Shared < 1 || o.Shared > mostConnections:
		return fmt.Errorf("mysql: there must be 1 to %d shared connections, not %d", mostConnections, o.Shared)
	case o.Waits < 1 || o.Waits > mostConnections:
		return fmt.Errorf("mysql: there must be 1 to %d connections for waits, not %d", mostConnections, o.Waits)
	case o.Slice < 10*time.Millisecond || o.Slice > longestSlice:
		return fmt.Errorf("mysql: the slice of a wait must be between 10 ms and %v, not %v", longestSlice, o.Slice)
	case o.Check > CheckNone:
		return errors.New("mysql: unknown check policy")
	}
	o.Timeout = (o.Timeout + time.Second - 1).Truncate(time.Second)
	return nil
}
