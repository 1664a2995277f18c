package fencemodel

// Rules are the rules of a fence as switches. All on is package fence; each one off is a fence that
// looks sensible and is not.
type Rules struct {
	// CheckReads: reads are checked, and raise a mark. Off: the fence is on writes only.
	CheckReads bool
	// TwoMarks: readers and writers have a mark each. Off: everybody is compared with the one newest.
	TwoMarks bool
	// ReadersCount: a writer has to be newer than the readers too. Off: only writers are compared.
	ReadersCount bool
	// MarkGrows: an older reader that passes leaves the readers' mark alone. Off: the last reader is the mark.
	MarkGrows bool
	// WriterHeedsReaders: the marked writer, too, is refused once a newer reader was there. Off: it always passes.
	WriterHeedsReaders bool
	// WriterMayRead: the marked writer passes as a reader, which it is after a downgrade. Off: a reader must be newer.
	WriterMayRead bool
	// Nonces: who has the token of a mark is itself only if it has its nonce too. Off: the bare token decides.
	Nonces bool
	// Itself: who is marked itself passes again. Off: only who is newer passes, so each passes once.
	Itself bool
	// Atomic: check and effect are one step. Off: anything may happen between them.
	Atomic bool
	// UpgradeMints: an upgrade mints a new token. Off: the writer goes on with the token it had as a reader.
	UpgradeMints bool
}

// Sound returns the fence as it is: every rule on.
func Sound() Rules {
	return Rules{
		CheckReads: true, TwoMarks: true, ReadersCount: true, MarkGrows: true, WriterHeedsReaders: true,
		WriterMayRead: true, Nonces: true, Itself: true, Atomic: true, UpgradeMints: true,
	}
}
