package shell

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/interlock-go/interlock/driver"
)

// ErrNoFunction is what Do and similar calls return before they take anything.
var ErrNoFunction = errors.New("the function is nil")

// Wrap adds the operation and the lock to an error that does not name them yet, and changes nothing about what the
// error matches.
func Wrap(op string, key driver.Key, err error) error {
	switch own := err.(type) { //nolint:errorlint // only these themselves name the lock; one inside another is wrapped
	case nil:
		return nil
	case *driver.HeldError, *driver.LostError, *driver.UnavailableError: // they name the lock themselves
		return err
	case *driver.RefusedError: // it names the lock too, but the operation in the driver's words
		named := *own
		named.Op, named.Name = op, key.Name
		return &named
	}
	return fmt.Errorf("interlock: %s %q: %w", op, key.Name, err)
}

// WithOperation has an error of an engine that did not answer name op, for an operation that consists of others. To the
// engine an Upgrade is an acquisition. Programs see the operation of such an error only, as UnavailableError.Op.
func WithOperation(op string, key driver.Key, err error) error {
	if errors.Is(err, driver.ErrUnavailable) &&
		!errors.Is(err, driver.ErrLost) { // the Cause of a loss may be an unavailable engine
		return Unavailable(op, key, err)
	}
	return err
}

// Unavailable returns the error for an operation that the engine did not do, as far as is known. It is refused if the
// engine said no, and else unavailable. Errors of drivers become these classes here and nowhere else.
func Unavailable(op string, key driver.Key, err error) error {
	if refused := driver.Refusal(err); refused != nil {
		return &driver.RefusedError{Op: op, Name: key.Name, Err: reasons(err), Hint: refused.Hint, Open: refused.Open}
	}
	return &driver.UnavailableError{Op: op, Name: key.Name, Err: reasons(err), NotSent: driver.IsNotSent(err)}
}

// doubtful is unavailable for an operation that was asked for more than once; err is what came last. doubt says that
// the outcome of an earlier attempt is unknown. Then so is the outcome of all, whatever the last attempt was told.
func doubtful(op string, key driver.Key, err error, doubt bool) error {
	if doubt {
		return &driver.UnavailableError{Op: op, Name: key.Name, Err: reasons(err)}
	}
	return Unavailable(op, key, err)
}

// leavesDoubt reports whether the outcome of an attempt that ended with err is unknown.
func leavesDoubt(err error) bool {
	return driver.Refusal(err) == nil && !driver.IsDefinite(err) && !driver.IsNotSent(err)
}

// mayHaveRun reports whether an attempt that ended with err may have done what it was to do, also when the engine has
// said no.
func mayHaveRun(err error) bool { return !driver.IsDefinite(err) && !driver.IsNotSent(err) }

// reasons removes from err what its class will say again. It turns joined errors into one line, with what the engine
// said in front.
func reasons(err error) error {
	switch e := err.(type) { //nolint:errorlint // one by one
	case *driver.UnavailableError:
		return e.Err
	case *driver.RefusedError:
		return e.Err
	case interface{ Unwrap() []error }:
		if !strings.Contains(err.Error(), "\n") { // it has a text of its own
			return err
		}
		all := make(several, 0, 2)
		for _, part := range e.Unwrap() {
			if part = reasons(part); part != nil {
				all = append(all, part)
			}
		}
		slices.Reverse(all)
		return all
	}
	return err
}

// several are the reasons of one error, in one line. errors.Is finds each.
type several []error

// Error joins them. A text that has been said is not said again: the end of the caller's context is often in the
// engine's error too.
func (s several) Error() string {
	texts := make([]string, 0, len(s))
	for _, text := range s.texts() {
		if !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "; ")
}

// texts returns what each says, also those that are several themselves.
func (s several) texts() (all []string) {
	for _, err := range s {
		if inner, is := err.(several); is { //nolint:errorlint // as reasons makes it
			all = append(all, inner.texts()...)
			continue
		}
		all = append(all, err.Error())
	}
	return all
}

// Unwrap returns them.
func (s several) Unwrap() []error { return s }

// Final reports whether asking again would bring the same answer.
func Final(err error) bool { return isPermanent(err) || driver.Refusal(err) != nil }

// isPermanent reports whether an error will be the same the next time. A refusal does not count, because it matches
// ErrUnavailable; see final.
func isPermanent(err error) bool {
	return errors.Is(err, driver.ErrClosed) ||
		!errors.Is(err, driver.ErrUnavailable) && !errors.Is(err, context.DeadlineExceeded)
}

// Joined adds the error of a release to what a function has returned, unless the function has returned that already,
// for instance as the cause of its context.
func Joined(err, release error) error {
	if several, is := release.(interface{ Unwrap() []error }); is { // only a join itself is taken apart
		for _, one := range several.Unwrap() {
			err = Joined(err, one)
		}
		return err
	}
	if err != nil && release != nil && errors.Is(err, release) {
		return err
	}
	return errors.Join(err, release)
}

var (
	// ErrNilContext says that a context is missing.
	ErrNilContext = errors.New("interlock: nil Context")
	// ErrNoClient says that nobody made the client.
	ErrNoClient = errors.New("interlock: Client was not made by Open or New")
	errNoMutex  = errors.New("interlock: Mutex was not made by Client.Mutex")
)

// CheckContext returns an error for a nil context.
func CheckContext(ctx context.Context) error {
	if ctx == nil {
		return ErrNilContext
	}
	return nil
}

// PanicOn panics with err, for methods that have no error to return.
func PanicOn(err error) {
	if err != nil {
		panic(err.Error())
	}
}

// CheckCall returns made, the error of the receiver, or else the error of a nil context.
func CheckCall(made error, ctx context.Context) error { //nolint:revive // what is wrong with the receiver is said first
	if made != nil {
		return made
	}
	return CheckContext(ctx)
}

// MaxNameBytes bounds the names of locks and owners; every engine can store as much.
const MaxNameBytes = 512

// ValidateName checks the name of a lock or of an owner; what says which. No engine is asked.
func ValidateName(what, name string) error {
	switch {
	case name == "":
		return fmt.Errorf("interlock: the %s is empty: it must have 1 to %d bytes", what, MaxNameBytes)
	case len(name) > MaxNameBytes:
		return fmt.Errorf("interlock: the %s has %d bytes: at most %d are allowed", what, len(name), MaxNameBytes)
	case !utf8.ValidString(name):
		return fmt.Errorf("interlock: the %s %q is not valid UTF-8", what, name)
	}
	return nil
}
