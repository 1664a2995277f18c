// Package stamp has what a holder shows to a resource, and nothing else: fence.Stamp is the same type. It stands by
// itself, so that a program that only takes locks does not link database/sql and net/http, which the guards of package
// fence need.
package stamp

import "fmt"

// Stamp is what a holder shows to a resource.
//
// Token grows with every acquisition of the same lock. Nonce is unique to one acquisition (also to one pass of the lock
// inside a process) and the same on re-entry. It tells two holders apart even where an engine lost its memory and
// granted a token twice. Tokens of another source that are never given twice may do without a nonce.
type Stamp struct {
	Token  uint64 // a fencing number
	Nonce  string // of the acquisition; see above
	Shared bool   // a reader's stamp
}

// String is for messages: "writer 42 (nonce abc)".
func (s Stamp) String() string {
	role := "writer"
	if s.Shared {
		role = "reader"
	}
	return fmt.Sprintf("%s %d (nonce %s)", role, s.Token, s.Nonce)
}
