package fence

// The rule itself, as a function of two marks and a stamp. The statements of sql.go and the script of redislock's guard
// are the same rule; tests compare them. docs/rationale.md, Fences, has the decision, with the reason for two marks.

// marks are the newest writer and the newest reader that have touched a resource.
type marks struct{ writer, reader mark }

// mark is a stamp without its role. The zero mark is older than every stamp.
type mark struct {
	token uint64
	nonce string
}

func markOf(s Stamp) mark { return mark{token: s.Token, nonce: s.Nonce} }

// stamp returns m as a StaleError shows it.
func (m mark) stamp(shared bool) Stamp { return Stamp{Token: m.token, Nonce: m.nonce, Shared: shared} }

// notBefore reports whether m is newer than other or is other itself.
func (m mark) notBefore(other mark) bool { return m.token > other.token || m == other }

// blocker returns the newest mark that s may not pass, and false if there is none. A writer that was marked and then
// overtaken by a newer reader does not pass: its delayed write would change what that reader has read.
func (k marks) blocker(s Stamp) (seen Stamp, blocked bool) {
	own := markOf(s)
	if !own.notBefore(k.writer) {
		seen, blocked = k.writer.stamp(false), true
	}
	if !s.Shared && !own.notBefore(k.reader) && (!blocked || k.reader.token > seen.Token) {
		seen, blocked = k.reader.stamp(true), true
	}
	return seen, blocked
}

// raised returns the marks after s has passed. A reader raises the reader's mark only if it is newer: two readers hold
// beside each other, and the older one has done nothing wrong.
func (k marks) raised(s Stamp) marks {
	switch {
	case !s.Shared:
		k.writer = markOf(s)
	case s.Token > k.reader.token:
		k.reader = markOf(s)
	}
	return k
}

// admit returns the marks after s has touched resource, or the error that refuses it.
func (k marks) admit(resource string, s Stamp) (marks, error) {
	if seen, blocked := k.blocker(s); blocked {
		return k, &StaleError{Resource: resource, Have: s, Seen: seen}
	}
	return k.raised(s), nil
}
