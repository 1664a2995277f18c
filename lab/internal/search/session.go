package search

import (
	"slices"
	"strings"
)

// session is what a server keeps of one connection: a transaction.
type session struct {
	watches bool
	dirty   bool // what it watches has changed
	multi   bool
	queue   [][]string
}

// execute has the server carry out a command of one client.
func (s *state) execute(who int, args []string) (any, error) {
	if args[0] == "SET" && args[1] == goods { // what the lock protects decides nothing
		return "OK", nil
	}
	c := &s.clients[who].session
	name := strings.ToUpper(args[0])
	switch {
	case c.multi && (name == "WATCH" || name == "UNWATCH" || name == "MULTI"), !c.multi && name == "EXEC":
		return nil, &unknownError{strings.Join(args, " ")} // Redis refuses them, or queues them
	case name == "WATCH":
		c.watches = true
		return "OK", nil
	case name == "UNWATCH":
		*c = session{}
		return "OK", nil
	case name == "MULTI":
		c.multi = true
		return "OK", nil
	case name == "EXEC":
		return s.commit(who)
	case c.multi:
		c.queue = append(slices.Clip(c.queue), args)
		return "QUEUED", nil
	}
	return s.ask(args)
}

// commit is EXEC: it does nothing if what the client watches has changed.
func (s *state) commit(who int) (any, error) {
	c := s.clients[who].session
	s.clients[who].session = session{}
	if c.dirty {
		return nil, nil //nolint:nilnil // Redis's null
	}
	var all []any
	for _, args := range c.queue {
		reply, err := s.ask(args)
		if err != nil {
			return nil, err
		}
		all = append(all, reply)
	}
	return all, nil
}

// ask carries out a command, and tells those who watch the key.
func (s *state) ask(args []string) (any, error) {
	reply, changed, err := s.server.do(s.now, args)
	if changed {
		s.touch()
	}
	return reply, err
}

// touch tells those who watch the key that it has changed.
func (s *state) touch() {
	for i := range s.clients {
		c := &s.clients[i].session
		c.dirty = c.dirty || c.watches
	}
}
