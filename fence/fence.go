// Package fence is the resource's side of fencing: what a holder shows to the thing that its lock protects, so that the
// thing can refuse a holder that was overtaken. It imports nothing but the standard library.
package fence

// Stamp is what a holder shows to a resource.
//
// Token grows with every acquisition of the same lock. Nonce is unique to one acquisition (also to one pass of the lock
// inside a process) and the same on re-entry: it tells two holders apart even where an engine lost its memory and granted
// a token twice.
type Stamp struct {
	Token  uint64
	Nonce  string
	Shared bool // a reader's stamp
}
