package conn

// Bundle says how several calls become one run of one script, because to begin a run costs a server more than many a
// call. A client that sends calls of several goroutines together may make use of it.
//
// Its script gets the keys of all calls, one call after the other. Its first argument has a letter for each, and after
// it come the arguments of all. It answers with a list that has the answer to each call, which may be an error: the
// others have run all the same. It must be fit for calls whose keys are in several slots, and for no calls
// at all: it is run so when the server is to know it.
type Bundle struct {
	Script  *Script  // that runs the calls
	Members []Member // the kinds of calls that it can run
}

// Member is a kind of calls that can be in a bundle: those of Script, by its name, with exactly so many keys and
// arguments.
type Member struct {
	Letter byte    // how the bundle's script knows them
	Script *Script // what they run when they are sent by themselves
	Keys   int     // how many each has
	Args   int     // how many each has
}

// Letter returns the letter of a call, or 0 if it cannot be in the bundle. Nothing can be in a nil Bundle.
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
