// The session: its state, and the library's events. keeper.go makes and keeps it, dial.go connects it, call.go sends
// over its link, and session_end.go ends it.
//
// The library tells of a session's states in the order in which they happen, from goroutines of its own. So the methods
// that it calls only set fields and wake the keeper. What needs an answer of the servers is done by the keeper or by
// goroutines of spawn.

package zklock

import (
	"strconv"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/interlock-go/interlock/enginekit"
)

// session is one session with the servers, over as many connections as it needs. Each session has a client of the
// library for itself, so that no request of one session can be carried out in the next: the nodes of a session are its
// own.
//
// A session is suspended while no server can be reached. It may live on in the servers, so its holds are neither lost
// nor given back; Confirmed says how long they may be trusted. It is over, and its holds are lost, when a server says
// so.
type session struct {
	d    *Driver
	line *line
	conn *zk.Conn
	over chan struct{} // closed by end
	told chan struct{} // closed by end when the holds' owners know
	news chan struct{} // buffer of one: wakes the keeper

	shown bool // the user was authenticated; only the keeper uses it

	// The portable layer reads it for each hold, so it takes no mutex.
	confirmed  atomic.Int64 // see Confirmed; in nanoseconds since Driver.born
	doubted    atomic.Int64 // see doubt; likewise, and 0 while there is no doubt
	unanswered atomic.Int32 // requests of signs of life that are under way

	// Set by the first connection, under Driver.mu, and constant then.
	id      int64         // the servers' number of it
	timeout time.Duration // as negotiated

	// Driver.mu guards these.
	turn        int               // counts connections
	began       time.Time         // just before the latest of them was asked for
	linked      bool              // there is a connection
	fresh       bool              // the connection is not fenced yet; see link
	node        string            // this session's own node; empty until it was made
	nodes       int               // how many such nodes were made
	link        *link             // nil while no request may be sent
	watches     map[string]*watch // by the path of the node
	listeners   map[string]*entry // who hears of requests, by the path of the lock's node
	unlistening []*entry          // who must listen again
	holds       map[*entry]struct{}
	young       []*entry                   // holds whose own nodes are not watched yet
	refused     enginekit.Refusals[string] // by the paths of the nodes; see retire.go
	cause       error                      // why it is over; nil while it lives
}

// link is a connection that is ready for requests.
//
// What was sent over an earlier connection may arrive after what is sent over this one: a server, or the network, may
// have kept it. So each session has a node of its own, whose version is raised before a new connection is used. Each
// transaction that puts a node into a queue checks the version. After the raise, a request whose reply was lost has
// either been carried out or never will be, and one look at the queue tells which. It is not changed once it is a
// session's link, but for its last fields. A connection that needs another version gets another link.
type link struct {
	s     *session
	turn  int    // the number of the connection
	node  string // the session's node, and the version that its transactions check
	epoch int32

	// Driver.mu guards these.
	viewings map[string]*viewing // by the path of the lock's node
	known    sign                // see heard
	signs    []*sign             // in the order in which they were sent; see proven
}

// start makes a session. It does not block: the library connects in the background, and tells by handleEvent.
func (d *Driver) start() (*session, error) {
	s := &session{
		d: d, line: newLine(d.life, d.hosts, &d.opts),
		over: make(chan struct{}), told: make(chan struct{}), news: make(chan struct{}, 1),
		watches: make(map[string]*watch), holds: make(map[*entry]struct{}), listeners: make(map[string]*entry),
	}
	s.line.returns = s.doubt
	conn, _, err := zk.Connect(d.hosts, d.opts.Timeout,
		zk.WithDialer(s.line.dial), zk.WithHostProvider(s.line), zk.WithEventCallback(s.handleEvent),
		zk.WithLogger(silent{}), zk.WithLogInfo(false), zk.WithMaxConnBufferSize(sendBuffer))
	if err != nil {
		return nil, err
	}
	s.conn = conn
	return s, nil
}

// sendBuffer is the most that the library sends at once, in bytes. After a reconnection it sends 128 KiB of watches.
const sendBuffer = 256 << 10

// silent is the library's logger. What matters of what it says comes as an event or an error.
type silent struct{}

// Printf discards.
func (silent) Printf(string, ...any) {}

// handleEvent handles what the library tells, in the order in which it happened. The library's goroutines call it, so
// it must not block.
func (s *session) handleEvent(ev zk.Event) {
	// Events of watches have a type of their own.
	if ev.Type != zk.EventSession {
		s.fired(ev)
		return
	}
	switch ev.State {
	case zk.StateHasSession:
		s.connected()
	// The session lives on at the servers. Only its connection is gone.
	case zk.StateDisconnected, zk.StateConnecting:
		s.suspended()
	case zk.StateExpired:
		s.end(zk.ErrSessionExpired)
	}
}

// connected records that a server has accepted a connection. The session can be used when the keeper has made it ready.
// It is called for the first connection and for each later one of the same session. A later one repairs nothing by
// itself: what was under way is found out over the link that the keeper makes of it.
func (s *session) connected() {
	g := s.line.greeted()
	s.d.mu.Lock()
	if s.turn > 0 && g.timeout < s.timeout {
		s.d.mu.Unlock()
		s.end(errShorter)
		return
	}
	if s.turn == 0 {
		s.id, s.timeout = g.id, g.timeout
	}
	s.turn++
	s.linked, s.fresh, s.began = true, true, g.began
	s.d.mu.Unlock()
	s.wakeKeeper()
}

// suspended records that there is no connection any more. Holds are not touched: the servers may hear of the session in
// time over another connection, and Confirmed says how long they count.
func (s *session) suspended() {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	if s.linked {
		s.d.opts.Logger.Info("zk: connection lost, session suspended", "session", s.name(), "holds", len(s.holds))
	}
	s.linked, s.fresh, s.link = false, false, nil
	s.d.changed()
}

// broken records that a request over l ended without an answer. The library has closed the connection, or is about to.
// Many requests may fail with one connection, and only the first of them cuts it: the next connection may be there
// already.
func (l *link) broken() {
	l.s.d.mu.Lock()
	was := l.s.link == l
	if was {
		l.s.link = nil
		l.s.d.changed()
	}
	l.s.d.mu.Unlock()
	// Outside of the mutex, and only once for each link.
	if was {
		l.s.line.cut()
	}
}

// stale records that the version that l knows is not the session's any more: a late raise of an earlier connection has
// arrived, or an operator was at work. The keeper raises it again. The connection itself is sound, so it is not cut, as
// it is by broken.
func (l *link) stale() {
	l.s.d.mu.Lock()
	if l.s.link == l {
		l.s.link, l.s.fresh = nil, true
		l.s.d.changed()
	}
	l.s.d.mu.Unlock()
	l.s.wakeKeeper()
}

// wakeKeeper makes the keeper look for something to do. It does not block.
func (s *session) wakeKeeper() {
	select {
	case s.news <- struct{}{}:
	default: // it is awake already
	}
}

// name is the session's ID as ZooKeeper's tools write it.
func (s *session) name() string { return strconv.FormatUint(uint64(s.id), 16) }
