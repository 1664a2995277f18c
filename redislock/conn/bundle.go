// Bundles: several calls in one run of a script (docs/rationale.md, Bundles). redislock says which calls may share a
// run, package resp gathers them.

package conn

// Bundle says how several calls become one run of one script, because beginning a run costs a server more than many a
// call does. A client that sends calls of several goroutines together may use it.
//
// The bundle's script gets the keys of all calls, one call after the other. Its first argument has a letter for each
// call, and the arguments of all calls follow. It answers with a list of the answers to each call. An answer may be an
// error: the other calls have run all the same. The script must also accept keys of several slots, and no calls at all:
// it is run so to make the server know it.
type Bundle struct {
	Script  *Script  // that runs the calls
	Members []Member // the kinds of calls that it can run
}

// Member is a kind of call that can be in a bundle: a call of exactly this Script, with so many keys and arguments. The
// bundle's script splits the keys and arguments of all calls by these numbers, so a call with others cannot be in it.
type Member struct {
	Letter byte    // how the bundle's script knows them
	Script *Script // what they run when they are sent by themselves
	Keys   int     // how many each has
	Args   int     // how many each has
}

// Letter returns the letter of a call, or 0 if it cannot be in the bundle. A nil Bundle accepts no call.
func (b *Bundle) Letter(c *Call) byte {
	if b == nil {
		return 0
	}
	for i := range b.Members {
		if m := &b.Members[i]; c.Script == m.Script && len(c.Keys) == m.Keys && len(c.Args) == m.Args {
			return m.Letter
		}
	}
	return 0
}
