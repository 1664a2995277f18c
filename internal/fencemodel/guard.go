package fencemodel

// mark is a stamp that has passed. The zero mark is older than all; nonces are the numbers of acquisitions.
type mark struct{ token, nonce int8 }

// marks are what the fence remembers.
type marks struct{ writer, reader mark }

// stamp is what a holder shows.
type stamp struct {
	mark
	shared bool
}

// notBefore reports whether m is newer than other, or is other itself.
func (r *Rules) notBefore(m, other mark) bool {
	return m.token > other.token || r.Itself && m.token == other.token && (m.nonce == other.nonce || !r.Nonces)
}

// passes reports whether the fence lets s touch the resource.
func (r *Rules) passes(k marks, s stamp) bool {
	if !r.TwoMarks {
		return r.notBefore(s.mark, k.writer)
	}
	if s.shared && !r.WriterMayRead {
		return s.token > k.writer.token
	}
	if !r.notBefore(s.mark, k.writer) {
		return false
	}
	heedless := !r.WriterHeedsReaders && s.mark == k.writer
	return s.shared || !r.ReadersCount || heedless || r.notBefore(s.mark, k.reader)
}

// raised returns the marks after s has passed.
func (r *Rules) raised(k marks, s stamp) marks {
	switch {
	case !s.shared || !r.TwoMarks:
		k.writer = s.mark
	case s.token > k.reader.token || !r.MarkGrows:
		k.reader = s.mark
	}
	return k
}
