package broken

// Waits that are left and taken up again.

// isLeft is called when the context of a wait has ended.
func (s *Store) isLeft(e *entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e.left = true
	if s.defect == LeftLosesPlace && e.beside == "" && e.by != condWait {
		l := s.lock(e.r.Key)
		l.waiters = remove(l.waiters, e)
	}
}

// resumes is called when e, who waits, is asked for again.
func (s *Store) resumes(l *lock, e *entry) {
	e.resumed = e.left
	if e.resumed && s.defect == ResumedGoesToTheEnd {
		l.waiters = append(remove(l.waiters, e), e)
	}
}
