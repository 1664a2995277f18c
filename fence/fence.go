// Package fence is the resource's side of fencing: it lets the resource that a lock protects refuse a holder that was
// overtaken. It imports nothing but the standard library, so a resource that has no locks of its own can use it.
//
// No lock with a lease can keep a process that stands still from going on after its lease has ended. So every
// acquisition comes with a [Stamp] (Lease.Stamp), which the holder shows to the resource. The resource remembers the
// newest that it has seen, and refuses what is older. That needs no clock and no assumption about time.
//
// # Which type do I want?
//
//   - The resource is a row or a table of a SQL database: [SQLGuard], in the transaction of the write.
//   - It is in the memory of one process, such as a server: [MemoryGuard].
//   - It is in Redis: Guard of package redislock, or of redislock/goredislock.
//   - It is behind HTTP: [Transport] or [SetHeader] at the client, [Middleware] at the server.
//
// # The rule
//
// A guard keeps two marks for each resource: the newest writer and the newest reader that have touched it.
//
//   - A reader passes if it is newer than the writer's mark, or is the marked writer itself.
//   - A writer passes if that is true of it, and it is newer than the reader's mark too, or is the marked reader
//     itself.
//   - A stamp that passes raises its own mark. Every other stamp gets a [*StaleError].
//
// Newer means a larger token. Itself means the same token with the same nonce: a re-entry, or the read as which a
// downgraded write goes on.
//
// # How to use one
//
//   - Check on the first touch of the resource, reads included, and before anything is read from it. A fence on writes
//     only loses updates: the old holder's write comes before the new one's and after its read.
//   - Check again with every write, in one atomic step with the write. [SQLGuard] does that in the transaction of the
//     write, [MemoryGuard.Do] under a lock of the process, Guard of package redislock in one script.
//
// # Savepoints, and databases with several primaries
//
// A check in SQL lasts as long as what it is in. ROLLBACK TO a savepoint that is older than the check undoes the mark
// and frees the row. So a newer holder may come while the transaction goes on. Check outside of every savepoint, nested
// transactions of a mapper (GORM) included. Or check again after each ROLLBACK TO, and give up if that is refused.
//
// A row lock is that of one server. Several servers may take writes at once: Galera, group replication with several
// primaries, bidirectional replication. There two holders can pass on two of them, and each reads what the other has
// not sent yet. The conflict is found at the COMMIT at best, and only if both have changed the same row. Send every
// transaction that checks to one and the same primary. A primary that was promoted without the last transactions has
// lost their marks and their data alike.
//
// # What it promises
//
// With growing tokens: once a holder has passed, no write of an older one takes effect on that resource. No reader sees
// a write of an older holder between two reads of its own. A holder that the engine still counts as one is never
// refused.
//
// If an engine loses its memory and tokens go back, updates that read before they write are still never lost. Both must
// be done with the same stamp, so read again after an upgrade. But a new holder may be refused until the tokens are
// larger again. Writes that read nothing may be applied in another order than the locks were held.
//
// It does not put one holder's own requests in order. A holder that sends a write, gives up waiting for the answer and
// goes on has to expect that write to arrive later.
//
// All of this is checked for every reachable state of a model with up to three acquisitions, see internal/fencemodel.
package fence

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/interlock-go/interlock/fence/stamp"
)

// Stamp is what a holder shows to a resource. It has the token, which grows with every acquisition of the lock, the
// nonce of the acquisition, and whether it is a reader's. Lease.Stamp returns one.
type Stamp = stamp.Stamp

const (
	mostName  = 512 // bytes of a resource, as of a lock's name
	mostNonce = 255 // bytes of a nonce
)

// errZeroStamp refuses the stamp of a hold that has ended: Lease.Stamp reports false then.
var errZeroStamp = errors.New("the stamp is zero: take it from Lease.Stamp while the lock is held, and look at its ok")

// valid reports what is wrong with s itself.
func valid(s Stamp) error {
	switch {
	case s.Token == 0:
		return errZeroStamp
	case s.Token > math.MaxInt64:
		return fmt.Errorf("the token %d is 2^63 or more, which no lock grants", s.Token)
	case len(s.Nonce) > mostNonce:
		return fmt.Errorf("the nonce has %d bytes; it may have at most %d", len(s.Nonce), mostNonce)
	case !plain(s.Nonce):
		return errors.New("the nonce is not UTF-8, or has a zero byte")
	}
	return nil
}

// validResource reports what is wrong with the name of a resource.
func validResource(resource string) error {
	switch {
	case resource == "":
		return errors.New(
			"the name of the resource is empty: name what the lock protects, for instance by the lock's name")
	case len(resource) > mostName:
		return fmt.Errorf("the name of the resource has %d bytes; it may have at most %d", len(resource), mostName)
	case !plain(resource):
		return errors.New("the name of the resource is not UTF-8, or has a zero byte")
	}
	return nil
}

// plain reports whether every store can keep s as a text.
func plain(s string) bool { return utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 }

// validate is what every guard checks before it looks at its marks.
func validate(resource string, s Stamp) error {
	if err := validResource(resource); err != nil {
		return fmt.Errorf("fence: %w", err)
	}
	if err := valid(s); err != nil {
		return fmt.Errorf("fence: check %q: %w", resource, err)
	}
	return nil
}

// ErrStale says that the resource has seen a newer holder. See [StaleError].
var ErrStale = errors.New("overtaken by a newer holder")

// StaleError says that a resource refuses a stamp because it has seen a newer one. The holder has lost its lock,
// whatever it believes. It should give up its work, roll back its transaction, and not try again with this stamp.
type StaleError struct {
	Resource string // whose guard refuses
	Have     Stamp  // the stamp that was refused
	Seen     Stamp  // the newest mark that is in its way
}

// Error names the resource and both stamps.
func (e *StaleError) Error() string {
	return fmt.Sprintf("fence: %q refuses %v: %v was there", e.Resource, e.Have, e.Seen)
}

// Is matches ErrStale.
func (e *StaleError) Is(target error) bool { return target == ErrStale }
