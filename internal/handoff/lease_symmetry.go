package handoff

// Canon puts the clients in order of what they are at, and renames requests accordingly.
func (m *leases) Canon(s leaseState) leaseState {
	var keys [maxClients]uint64
	for c := range m.clients {
		keys[c] = m.rank(&s, c)
	}
	place, sorted := order(keys[:m.clients])
	if sorted {
		return s
	}
	rename := func(id uint8) uint8 {
		c := m.owner(id)
		return id + uint8((int(place[c])-c)*m.requests)
	}
	to := leaseState{left: s.left, wire: s.wire}
	for c := range m.clients {
		to.clients[place[c]] = s.clients[c]
		for r := range m.requests {
			to.tomb[int(place[c])*m.requests+r+1] = s.tomb[c*m.requests+r+1]
		}
	}
	if s.holder != 0 {
		to.holder = rename(s.holder)
	}
	to.wire.rename(rename)
	return to
}

// rank is a number that says much of what distinguishes c from other clients.
func (m *leases) rank(s *leaseState, c int) uint64 {
	p := s.clients[c]
	rank := uint64(p.phase)<<24 | uint64(p.req)<<16 | uint64(p.sends)<<8 | uint64(p.trust)
	for r := range m.requests {
		id := uint8(c*m.requests + r + 1)
		rank = rank<<4 | uint64(s.tomb[id])
		if s.holder == id {
			rank |= 8
		}
	}
	return rank
}

// order returns the place of each key among the sorted keys, and whether they are sorted already. Equal keys stay in
// order.
func order(keys []uint64) (place [maxClients]uint8, sorted bool) {
	sorted = true
	for i, k := range keys {
		for j, other := range keys {
			if other < k || other == k && j < i {
				place[i]++
			}
		}
		sorted = sorted && int(place[i]) == i
	}
	return place, sorted
}
