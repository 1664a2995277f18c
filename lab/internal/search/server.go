package search

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	key   = "stock" // the lock of all programs
	goods = "goods" // what it protects: each holder writes its name there
)

// forever is the end of a key without an expiry.
const forever = -1

// ownerChecked is the only script that the model knows: exhibit D5's.
const ownerChecked = `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) else return 0 end`

// server is a Redis with one key, as far as the exhibits use it. It is a value: a copy is another state.
type server struct {
	there bool
	value string
	ends  int64 // in ms since the beginning, or forever
}

// unknownError says that the model lacks a command. No search goes on then.
type unknownError struct{ command string }

func (e *unknownError) Error() string { return "the model of Redis does not know " + e.command }

// do carries out a command at an instant, and reports whether the key has changed.
func (s *server) do(now int64, args []string) (reply any, changed bool, err error) {
	changed = s.expire(now)
	before := *s
	reply, err = s.command(now, args)
	return reply, changed || *s != before || rewrites(args, reply), err
}

// rewrites reports whether a command that leaves everything as it was touches the key all the same.
func rewrites(args []string, reply any) bool {
	switch strings.ToUpper(args[0]) {
	case "GETSET":
		return true
	case "SET":
		return reply != nil
	case "EXPIRE":
		return reply == int64(1)
	}
	return false
}

// expire ends the key if its time is over.
func (s *server) expire(now int64) bool {
	if !s.leased() || s.ends > now {
		return false
	}
	*s = server{}
	return true
}

// leased reports whether the key is there and has an end.
func (s *server) leased() bool { return s.there && s.ends != forever }

func (s *server) command(now int64, args []string) (any, error) {
	name := strings.ToUpper(args[0])
	if at := keyAt(name); at >= len(args) || args[at] != key {
		return nil, &unknownError{strings.Join(args, " ")}
	}
	switch {
	case name == "SETNX" && len(args) == 3:
		if s.there {
			return int64(0), nil
		}
		*s = server{there: true, value: args[2], ends: forever}
		return int64(1), nil
	case name == "SET" && len(args) >= 3:
		return s.set(now, args)
	case name == "GETSET" && len(args) == 3:
		old := s.get()
		*s = server{there: true, value: args[2], ends: forever}
		return old, nil
	case name == "GET" && len(args) == 2:
		return s.get(), nil
	case name == "DEL" && len(args) == 2:
		return s.remove(), nil
	case name == "EXPIRE" && len(args) == 3:
		return s.lease(now, args[2], time.Second)
	case name == "EVAL" && len(args) == 5 && args[1] == ownerChecked:
		if s.get() == args[4] {
			return s.remove(), nil
		}
		return int64(0), nil
	}
	return nil, &unknownError{strings.Join(args, " ")}
}

// keyAt is where a command names its key.
func keyAt(name string) int {
	if name == "EVAL" {
		return 3
	}
	return 1
}

func (s *server) get() any {
	if !s.there {
		return nil
	}
	return s.value
}

func (s *server) remove() any {
	was := s.there
	*s = server{}
	if was {
		return int64(1)
	}
	return int64(0)
}

// set is SET with the options NX, EX and PX.
func (s *server) set(now int64, args []string) (any, error) {
	fresh := server{there: true, value: args[2], ends: forever}
	for i := 3; i < len(args); i++ {
		switch option := strings.ToUpper(args[i]); {
		case option == "NX":
			if s.there {
				return nil, nil //nolint:nilnil // Redis's null
			}
		case (option == "EX" || option == "PX") && i+1 < len(args):
			unit := time.Second
			if option == "PX" {
				unit = time.Millisecond
			}
			i++
			if _, err := fresh.lease(now, args[i], unit); err != nil {
				return nil, err
			}
		default:
			return nil, &unknownError{strings.Join(args, " ")}
		}
	}
	*s = fresh
	return "OK", nil
}

// lease gives the key an end.
func (s *server) lease(now int64, amount string, unit time.Duration) (any, error) {
	n, err := strconv.ParseInt(amount, 10, 64)
	if err != nil || n <= 0 {
		return nil, fmt.Errorf("the model takes no lease of %q", amount)
	}
	if !s.there {
		return int64(0), nil
	}
	s.ends = now + (time.Duration(n) * unit).Milliseconds()
	return int64(1), nil
}

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
