package handoff

// Canon puts the clients in order of what they are at, and renames requests accordingly.
func (m *queues) Canon(s queueState) queueState {
	var keys [maxClients]uint64
	for c := range m.clients {
		keys[c] = m.rank(&s, c)
	}
	place, sorted := order(keys[:m.clients])
	if sorted {
		return s
	}
	return m.renamed(s, place)
}

// renamed returns s with each client at its new place.
func (m *queues) renamed(s queueState, place [maxClients]uint8) queueState {
	rename := func(id uint8) uint8 { return renamedID(id, place) }
	to := s
	for c := range m.clients {
		to.clients[place[c]] = s.clients[c]
		to.heartbeats[place[c]], to.put[place[c]], to.tomb[place[c]] = s.heartbeats[c], s.put[c], s.tomb[c]
		to.line[c] = rename(s.line[c])
	}
	to.holder = rename(s.holder)
	to.wire.rename(rename)
	return to
}

// renamedID is the request id of the client at its new place.
func renamedID(id uint8, place [maxClients]uint8) uint8 {
	if id == 0 {
		return 0
	}
	return place[id-1] + 1
}

// rank is a number that says much of what distinguishes c from other clients: where it stands in the queue, above all.
func (m *queues) rank(s *queueState, c int) uint64 {
	p := s.clients[c]
	rank := uint64(p.phase)<<8 | uint64(p.trust)<<4 | uint64(p.lag)
	for i, id := range s.line {
		if int(id) == c+1 {
			rank |= uint64(i+1) << 16
		}
	}
	if int(s.holder) == c+1 {
		rank |= 1 << 20
	}
	rank = rank<<4 | uint64(s.heartbeats[c])
	if s.tomb[c] {
		rank |= 8
	}
	return rank
}
