package sim

// flaw is a deliberate mistake. A run with one must be found to be wrong.
type flaw string

const (
	none             flaw = ""
	freesByName      flaw = "the engine frees by name instead of by id"
	trustsFromReply  flaw = "the driver counts the lease from the reply"
	revivesExpired   flaw = "the engine renews what has expired"
	undoesNothing    flaw = "the engine's undo does nothing"
	forgetsIDs       flaw = "the engine forgets ids at once"
	tokensGoBack     flaw = "the engine's tokens go back"
	fencesWritesOnly flaw = "the resource's fence looks at writes only"
	ignoresContexts  flaw = "the driver goes on waiting when its context has ended"
	silenceIsYes     flaw = "the driver takes silence for a renewal"
)
