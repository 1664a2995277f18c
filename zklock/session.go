// The session: its state and the library's events, the keeper that makes and keeps it, and its end. dial.go connects
// it, call.go sends over its link.
//
// The library tells of a session's states in the order in which they happen, from goroutines of its own. So the methods
// that it calls only set fields and wake the keeper. What needs an answer of the servers is done by the keeper or by
// goroutines of spawn.

package zklock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/interlock-go/interlock/driver"
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
	refused     enginekit.Refusals[string] // by the paths of the nodes; see retire
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

// The keeper: one goroutine that makes sessions, makes each connection ready, and gives signs of life. call.go sends.
//
// A session passes through four states: made (start), connected (handleEvent), ready (makeReady, which sets
// session.link), and over (end). Requests are sent only while it is ready. Between connections it is connected again
// and again, and is made ready each time in the same order: raise the version, let requests in, set watches anew.

// keep is the goroutine that keeps a session while the driver is open: when one is over it makes the next. New starts
// it; Close ends it.
func (d *Driver) keep() {
	defer close(d.kept)
	for d.life.Err() == nil {
		s, err := d.start()
		if err != nil { // no hosts, which New has refused
			d.fail(err)
			return
		}
		d.mu.Lock()
		d.session = s
		d.changed()
		d.mu.Unlock()
		s.keep() // until it is over or the driver is closed
		s.close()
		s.end(errOver) // so that holds are lost also when the driver was closed first
	}
}

// keep gives signs of life, makes connections ready, and has holds watched, until s is over or the driver is closed. It
// must not wait for the servers beyond that: signs of life would be late. One timer serves all young holds: those that
// come meanwhile are looked at together with the first, and once more if they are too young then.
func (s *session) keep() {
	// An hour stands for never: each timer is set when there is something for it.
	heartbeat, guard, again := time.NewTimer(time.Hour), time.NewTimer(time.Hour), time.NewTimer(time.Hour)
	for _, timer := range []*time.Timer{heartbeat, guard, again} {
		defer timer.Stop()
	}
	guards, ticks := false, 0
	for {
		select {
		case <-s.over:
			return
		case <-s.d.life.Done():
			return
		case <-heartbeat.C:
			s.retire()
			if ticks++; ticks%eachTick == 0 || s.unanswered.Load() > 0 {
				s.heartbeat()
			}
			heartbeat.Reset(s.pause())
		case <-guard.C:
			guards = false
			s.guard()
		case <-again.C:
			s.wakeKeeper()
		// A new connection, a stale link, or a young hold.
		case <-s.news:
			switch ready, err := s.makeReady(); {
			case err != nil:
				// A connection that has closed says nothing to callers, and the next one wakes the keeper.
				if !errors.Is(err, zk.ErrConnectionClosed) {
					s.d.fail(err)
				}
				pause := retryPause
				if errors.Is(err, errStrangers) {
					pause = strangersPause
				}
				again.Reset(pause)
			case ready:
				heartbeat.Reset(s.pause())
			}
		}
		if !guards && s.hasYoung() {
			guards = true
			guard.Reset(guardAfter)
		}
	}
}

// retryPause is the pause between two attempts to make a connection ready that a server has refused, or answered with
// an error that means nothing to us. The connection itself is sound, so no news would come by themselves, and cutting
// it would help nobody. An operator may give a missing right at any time, and a server with too much to do recovers.
const retryPause = 500 * time.Millisecond

// A sign of life is given each third of the timeout, and each ninth while a request of one is under way. The session is
// trusted from when the last one that was proved was given, and with far servers the answer takes its part of that. So
// does the pause of a proof: where that is large, of a timeout below 9.6 s, they are given each quarter and each
// twelfth.
const (
	eachTick   = 3
	parts      = 3
	shortParts = 4
)

// pause is the time between two looks whether a sign of life is due.
func (s *session) pause() time.Duration {
	if 6*reportLag(s.timeout) > s.timeout {
		return s.timeout / (shortParts * eachTick)
	}
	return s.timeout / (parts * eachTick)
}

// mostUnanswered is how many requests of signs of life are under way at most. The library ends a connection over which
// nothing came for two thirds of the timeout. There are no more signs in that time, of two requests each.
func (s *session) mostUnanswered() int32 { return 2 * int32(s.timeout*2/3/s.pause()) }

// heartbeat gives a sign of life, and has it proved. Another goroutine waits for the answers, because a leader that
// hangs must not keep the next one from being sent.
func (s *session) heartbeat() {
	s.d.mu.Lock()
	l := s.link
	s.d.mu.Unlock()
	if l == nil || s.unanswered.Load() >= s.mostUnanswered() {
		return
	}
	// Ends with the answers or the connection. The library notices if there are none, and stale has the keeper see to
	// a node of the session that is not there any more.
	s.d.spawn(func() { _ = l.prove(s.d.life) })
}

// makeReady fences off earlier connections, see link, and lets requests in. It reports false without an error if there
// is nothing to do. An error means that the connection has gone, or that a server answered with it. A server that hangs
// ends it by the library's own limit, two thirds of the timeout. The link is made from what is known at the beginning,
// and published at the end if the connection is still the same.
func (s *session) makeReady() (ready bool, err error) {
	s.d.mu.Lock()
	l := &link{s: s, turn: s.turn, node: s.node}
	todo := s.linked && s.fresh && s.cause == nil
	s.d.mu.Unlock()
	if !todo {
		return false, nil
	}
	// The first connection makes the session's node; later ones raise its version.
	if l.node == "" {
		if err = s.introduce(l); err == nil {
			err = s.meet(l)
		}
	} else {
		err = s.raise(l)
	}
	if err != nil {
		if errors.Is(err, errOver) || s.endedBy() != nil || s.d.life.Err() != nil {
			return false, nil // nothing is left to do
		}
		return false, err
	}
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	// Another connection has come meanwhile, with news of its own.
	if !s.linked || s.turn != l.turn || s.cause != nil {
		return false, nil
	}
	again := s.node != ""
	s.node, s.fresh, s.link = l.node, false, l
	// The leader itself has heard of this connection, when it began: it knows all sessions by themselves. Whether it
	// leads is proved by the transaction that introduce or raise has made.
	s.confirm(s.began)
	s.doubted.Store(0) // there was no later attempt: suspended would have come before it
	if s.d.timeout == 0 {
		s.d.timeout = s.timeout
	}
	if again {
		s.rearm()
	}
	s.d.failure = nil
	s.d.changed()
	s.tellConnected(again)
	return true, nil
}

// tellConnected logs a connection, which is news for people only after the loss of the one before.
func (s *session) tellConnected(again bool) {
	level := slog.LevelDebug
	if again {
		level = slog.LevelInfo
	}
	s.d.opts.Logger.Log(s.d.life, level, "zk: connected", "session", s.name(), "timeout", s.timeout, "again", again)
}

// meet has the other servers of the list checked. A session with strangers is not used, and leaves no node behind.
func (s *session) meet(l *link) error {
	err := l.checkEnsemble(s.d.life)
	if errors.Is(err, errStrangers) {
		_ = l.delete(s.d.life, l.node) // otherwise it goes with the session
	}
	return err
}

// introduce authenticates the client and makes the session's node. The order matters: the ACL of the node stands for
// the user that has logged in, so before the login it would be refused.
func (s *session) introduce(l *link) error {
	if o := s.d.opts; o.User != "" && !s.shown {
		_, err := ask(s.d.life, l, func(c *zk.Conn) (struct{}, error) {
			return struct{}{}, c.AddAuth("digest", []byte(o.User+":"+o.Password))
		})
		if err != nil {
			return err
		}
		s.shown = true // the library shows it again after a reconnection
	}
	return s.makeNode(l)
}

// makeNode makes a node of this session's own. Its name is never used twice, so its version means something.
func (s *session) makeNode(l *link) error {
	s.d.mu.Lock()
	s.nodes++
	l.node = s.d.tree.sessions() + "/" + s.name() + "." + strconv.Itoa(s.nodes)
	s.d.mu.Unlock()
	err := l.create(s.d.life, l.node, []byte(s.d.opts.Client), zk.FlagEphemeral)
	if errors.Is(err, zk.ErrNoNode) {
		if err = l.makeFolder(s.d.life, s.d.tree.sessions()); err == nil {
			err = l.create(s.d.life, l.node, []byte(s.d.opts.Client), zk.FlagEphemeral)
		}
	}
	// The version of a new node.
	l.epoch = 0
	return err
}

// raise raises the version of the session's node. From then on, transactions of earlier connections are refused. It
// sets the data that is there already, because every write raises the version. The write is answered by the leader, so
// whatever an earlier connection has left is ordered before it or after it for everybody.
func (s *session) raise(l *link) error {
	stat, err := tell(s.d.life, l, func(c *zk.Conn) (*zk.Stat, error) {
		return c.Set(l.node, []byte(s.d.opts.Client), -1)
	})
	if errors.Is(err, zk.ErrNoNode) { // an operator has removed it
		return s.makeNode(l)
	}
	if err == nil {
		l.epoch = stat.Version
	}
	return err
}

// create makes one node with the driver's ACL.
func (l *link) create(ctx context.Context, path string, data []byte, flags int32) error {
	_, err := tell(ctx, l, func(c *zk.Conn) (string, error) { return c.Create(path, data, flags, l.s.d.opts.ACL) })
	return err
}

// makeFolder makes a node that lasts, and those above it. A server answers "no right" even where the node exists, so
// that is looked up. It is tried before what is above it is looked at, because as a rule only the last part is missing.
func (l *link) makeFolder(ctx context.Context, path string) error {
	err := l.create(ctx, path, nil, 0)
	if errors.Is(err, zk.ErrNoNode) {
		if err = l.makeFolder(ctx, parent(path)); err == nil {
			err = l.create(ctx, path, nil, 0)
		}
	}
	if errors.Is(err, zk.ErrNoAuth) {
		there, asked := ask(ctx, l, func(c *zk.Conn) (bool, error) {
			there, _, err := c.Exists(path)
			return there, err
		})
		if asked == nil && there {
			return nil
		}
	}
	if errors.Is(err, zk.ErrNodeExists) {
		return nil
	}
	return err
}

// parent returns the path above path. For "/a" it is "/".
func parent(path string) string {
	for i := len(path) - 1; i > 0; i-- {
		if path[i] == '/' {
			return path[:i]
		}
	}
	return "/"
}

// Retiring a session: a server refuses to remove what it has left in queues, so the session itself must end. release.go
// and watch.go tell of refusals; the keeper looks whether it is time.
//
// When that is, enginekit.Refusals says: without further holds at once, and after one timeout in any case. Until then
// the session grants nothing; requests wait for the next one, and those that stand in a queue stay there.

// errRetired ends a session that could not remove what it had left.
var errRetired = errors.New("zk: the servers refuse to remove a node of the session")

// removal records what a server has said to the removal of a node of this session. An answer that the node is gone ends
// what an earlier refusal has begun, and wakes the requests that wait for that.
func (s *session) removal(path string, err error) {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	switch {
	case err == nil, errors.Is(err, zk.ErrNoNode):
		if s.refused.Settled(path) {
			s.d.changed()
		}
	case isRefusal(err):
		s.refused.Refused(path, err)
	}
}

// retire ends the session if it has refusals and no trusted hold, or has had one for a timeout. The keeper calls it now
// and then.
func (s *session) retire() {
	s.d.mu.Lock()
	over, why := s.refused.Spent(s.timeout, s.hasTrusted()), s.refused.Err()
	s.d.mu.Unlock()
	if over {
		s.end(fmt.Errorf("%w: %w", errRetired, why))
	}
}

// hasTrusted reports whether an owner has a hold of the session that it has not released. The caller holds Driver.mu.
func (s *session) hasTrusted() bool {
	for e := range s.holds {
		if !e.ending {
			return true
		}
	}
	return false
}

// admit blocks while the session grants nothing, for reach at most. It returns nil if it grants, and errOver when the
// next session has to. Otherwise the error says what the servers refuse.
func (s *session) admit(ctx context.Context, gone <-chan struct{}, reach time.Duration) error {
	var patience <-chan time.Time
	for {
		s.d.mu.Lock()
		why, stir := s.refused.Err(), s.d.stir
		s.d.mu.Unlock()
		if why == nil {
			return nil
		}
		if patience == nil { // made late, because there nearly always is nothing that is refused
			timer := time.NewTimer(reach)
			defer timer.Stop()
			patience = timer.C
		}
		select {
		case <-stir:
		case <-s.over:
			return errOver
		case <-gone:
			return driver.ErrLost
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", errRetired, why)
		case <-patience:
			return fmt.Errorf("%w: %w", errRetired, why)
		}
	}
}

// The end of a session: why, what it takes along, and the goodbye.

var (
	// errOver ends what belongs to a session that is over.
	errOver = errors.New("zk: the session is over")

	// errShorter ends a session whose timeout a server has made shorter. Each server bounds the timeout anew when the
	// session comes back to it, and the servers then count by that. The owners of holds rely on the longer one, and
	// what Confirmed has promised cannot be taken back. So they are told that the holds are lost.
	errShorter = errors.New("zk: a server has made the session's timeout shorter")

	// errUnclear ends a session that a server may have made shorter: see doubt. It is also what lets a client go on
	// whose servers come back with older data: they refuse, without a word, all that have seen newer data, and a new
	// session has seen none.
	errUnclear = errors.New("zk: a server may have made the session's timeout shorter, and none has answered since")
)

// end ends the session, once. Its holds are lost, and its waiters begin again in the next session. Owners are told
// after the holds are out of the driver, so an owner that asks at once finds no hold of the old session.
func (s *session) end(cause error) {
	s.d.mu.Lock()
	if s.cause != nil {
		s.d.mu.Unlock()
		return
	}
	// In one step with what follows: a hold that is granted now either finds the cause, or is in holds and is told.
	s.cause = cause
	s.linked, s.link = false, nil
	if !s.d.closed {
		s.d.opts.Logger.Warn("zk: session lost", "session", s.name(), "holds", len(s.holds), "err", cause)
	}
	close(s.over)
	lost := make([]*entry, 0, len(s.holds))
	for e := range s.holds {
		lost = append(lost, e)
	}
	tell := s.d.lose(lost, driver.LostSession, cause)
	s.d.changed()
	s.d.mu.Unlock()
	s.line.hangUp()
	tell() // outside of the mutex: it is the users' code
	close(s.told)
}

// close says goodbye to the servers, which then remove the session's nodes at once. It waits for farewell at most.
// After that, or if the servers have ended the session, it cuts the connection, and the library ends by itself. Only a
// goodbye frees the holds at once; a connection that is merely cut leaves them until the session's timeout.
func (s *session) close() {
	timer := time.NewTimer(farewell)
	defer timer.Stop()
	over := s.over
	// The servers still have the session. But nobody gets its locks before their owners know.
	if s.endedByUs() {
		select {
		case <-s.told:
			over = nil // it is closed already, and the goodbye has the rest of farewell
		case <-timer.C:
			s.line.cut() // so that no goodbye arrives; over ends the wait below at once
		}
	}
	said := make(chan struct{})
	s.d.calls.Go(func() { // the library waits for a second or two
		s.conn.Close()
		close(said)
	})
	select {
	case <-said:
	case <-timer.C:
	case <-over:
	}
	s.line.hangUp()
	s.line.cut()
}

// farewell bounds the goodbye: servers that do not answer end the session by its timeout.
const farewell = 500 * time.Millisecond

// endedByUs reports whether the session was ended here, while the servers may still have it.
func (s *session) endedByUs() bool {
	cause := s.endedBy()
	return errors.Is(cause, errShorter) || errors.Is(cause, errUnclear) || errors.Is(cause, errRetired)
}

// endedBy returns why the session is over, or nil while it lives.
func (s *session) endedBy() error {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	return s.cause
}
