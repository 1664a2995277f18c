package locktx

import (
	"errors"
	"fmt"
)

// How a transaction ended, as a value and as an error.

// Outcome is how a transaction ended.
type Outcome int

const (
	// Committed: the database has said so.
	Committed Outcome = iota + 1
	// RolledBack: nothing of it is there or will be. If the connection broke before a COMMIT was sent, or the database
	// does not answer the ROLLBACK, it may still be undoing it.
	RolledBack
	// Unknown: a COMMIT was sent and not answered, or something other than this package ended the transaction.
	Unknown
)

// String returns the outcome in words.
func (o Outcome) String() string {
	switch o {
	case Committed:
		return "committed"
	case RolledBack:
		return "rolled back"
	case Unknown:
		return "outcome unknown"
	}
	return fmt.Sprintf("Outcome(%d)", int(o))
}

// OutcomeError says what became of a transaction whose COMMIT was sent: an error alone would not tell. With Committed,
// only the lock failed: it was lost while the database committed, so another owner may have been inside before the end.
type OutcomeError struct {
	Outcome Outcome // what became of the transaction
	Err     error   // what went wrong: the answer of the database, or the loss of the lock
}

// Error begins with the outcome.
func (e *OutcomeError) Error() string { return fmt.Sprintf("locktx: %v: %v", e.Outcome, e.Err) }

// Unwrap returns what went wrong.
func (e *OutcomeError) Unwrap() error { return e.Err }

// OutcomeOf returns the outcome that an error of Run or Commit stands for. That is Committed for nil, and an
// [*OutcomeError] has its own. It is RolledBack for every other, because then no COMMIT was sent.
func OutcomeOf(err error) Outcome {
	var told *OutcomeError
	switch {
	case err == nil:
		return Committed
	case errors.As(err, &told):
		return told.Outcome
	}
	return RolledBack
}
