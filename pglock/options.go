// The options of a driver and their checks. New and url.go fill them in; nothing changes them after that.

package pglock

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
	// Table holds the tokens, one row for each lock; three more tables are named after it, with _waits, _breaks and
	// _readers at the end. It may be written schema.table. Without a schema it is looked for along the role's
	// search_path, once, and made in the first schema there if there is none. Clients share their locks if, and only
	// if, they share the table, however they name it. So write the schema if roles have different paths. The default is
	// "interlock".
	Table string

	// Timeout is how long a session lasts without a sign of life: after that the server ends it, and its holds. It is
	// raised to a second if it is less. A URL takes it from the client's Lease. The default is 30 s.
	Timeout time.Duration

	// Shared is how many connections hold the locks that were free when they were asked for. Each runs one statement at
	// a time, so with too few many goroutines wait for each other. They are opened as they are needed. The default is
	// 4.
	Shared int

	// Waits is how many connections wait in the server, one for each lock that is waited for or was got by waiting. A
	// wait beyond that number asks again and again instead, and is served in no order. The default is 16.
	Waits int

	// Slice is how long one statement waits. Then the wait begins anew, at the end of the server's queue. Every
	// statement that waits keeps VACUUM from removing old row versions in the whole database, so a long slice makes
	// tables grow; a short one loses the order of coming more often. The default is 30 s, the least 10 ms.
	Slice time.Duration

	// ReadOnly is for programs that only look: New makes no tables, the driver needs no right but SELECT, removes no old
	// rows, and refuses Acquire. Without tables there are no locks. Break is not refused, since an operator asks for it
	// by name: it needs the right to INSERT. In a URL it is readonly=true. The default is false.
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
	// CheckWarn logs findings. A pooler that shares server sessions among clients is refused nevertheless, because two
	// clients would hold one lock.
	CheckWarn CheckPolicy = enginekit.CheckWarn
	// CheckRefuse makes New fail if a finding says that locks would not keep their guarantees.
	CheckRefuse CheckPolicy = enginekit.CheckRefuse
	// CheckNone asks nothing, and so does not notice a pooler that shares sessions.
	CheckNone CheckPolicy = enginekit.CheckNone
)

const (
	defaultTable   = "interlock"
	defaultTimeout = 30 * time.Second
	defaultShared  = 4
	defaultWaits   = 16
	defaultSlice   = 30 * time.Second

	// shortestTimeout is the unit in which TCP keep-alives are set.
	shortestTimeout = time.Second
	longestTimeout  = 20 * 24 * time.Hour // the server counts milliseconds in 31 bits
	mostConnections = 1000
)

// tableName matches names that need no quotes, so that the name is the same in the program and in psql. Fifty
// characters leave room for the suffixes within the 63 bytes of a name.
var tableName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^([a-z_][a-z0-9_]{0,62}\.)?[a-z_][a-z0-9_]{0,49}$`)
})

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

// validate checks o, whose defaults are filled in, and raises a timeout that is too short.
func (o *Options) validate() error {
	switch {
	case !tableName().MatchString(o.Table):
		return fmt.Errorf("postgres: the table %q must be lower-case letters, digits and _ (at most 50), with a "+
			"schema and a point in front if need be", o.Table)
	case o.Timeout < 0 || o.Timeout > longestTimeout:
		return fmt.Errorf("postgres: the session's timeout must be from 0 to %v, not %v", longestTimeout, o.Timeout)
	case o.Shared < 1 || o.Shared > mostConnections:
		return fmt.Errorf("postgres: there must be 1 to %d shared connections, not %d", mostConnections, o.Shared)
	case o.Waits < 1 || o.Waits > mostConnections:
		return fmt.Errorf("postgres: there must be 1 to %d connections for waits, not %d", mostConnections, o.Waits)
	case o.Slice < 10*time.Millisecond || o.Slice > longestTimeout:
		return fmt.Errorf("postgres: the slice of a wait must be between 10 ms and %v, not %v", longestTimeout, o.Slice)
	case o.Check > CheckNone:
		return errors.New("postgres: unknown check policy")
	}
	o.Timeout = max(o.Timeout, shortestTimeout)
	return nil
}
