package zklock

import (
	"bufio"
	"context"
	"encoding/binary"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

// The numbers of requests in ZooKeeper's protocol (ZooDefs.OpCode), and of errors that are no answer to them.
const (
	opCreate  = 1
	opSetData = 5

	codeThrottled = -127
	codeEphemeral = -120 // on a session that only its server knows
)

// moody stands before a server and answers requests with errors, which the server then does not get.
type moody struct {
	addr string

	mu     sync.Mutex
	op     uint32 // which requests
	left   int    // how many more of them
	code   int32
	errs   int    // how many it has answered so
	second func() // called for the second of them
	conns  []net.Conn
	mute   bool // nothing of the server's packets reaches the client
	greets bool // but for the greetings

	listener net.Listener
}

func newMoody(t testing.TB, server string) *moody {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m := &moody{addr: l.Addr().String(), listener: l}
	var all sync.WaitGroup
	t.Cleanup(func() {
		m.cut()
		all.Wait()
	})
	all.Go(func() { // ends with the listener
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			upstream, err := new(net.Dialer).DialContext(context.Background(), "tcp", server)
			if err != nil {
				_ = client.Close()
				continue
			}
			m.mu.Lock()
			m.conns = append(m.conns, client, upstream)
			m.mu.Unlock()
			all.Go(func() { m.serve(client, upstream) })
		}
	})
	return m
}

// serve stands between a client and its server until one of them has gone. The client's packets begin with their
// length, and commands of four letters do not.
func (m *moody) serve(client, upstream net.Conn) {
	defer client.Close()
	defer upstream.Close()
	first := bufio.NewReader(client)
	letters, err := first.Peek(4)
	if err == nil && letters[0] != 0 {
		_, _ = upstream.Write(letters)
		_, _ = io.Copy(client, upstream)
		return
	}
	var writing sync.Mutex // packets to the client are written whole
	var both sync.WaitGroup
	defer both.Wait()
	both.Go(func() { m.pass(first, client, upstream, &writing) })
	for greeting := true; ; greeting = false {
		packet, err := readPacket(upstream)
		if err != nil {
			_ = client.Close()
			return
		}
		if m.isMute(greeting) {
			continue
		}
		if writePacket(client, packet, &writing) != nil {
			return
		}
	}
}

// silence has nothing that the server says in packets reach the client any more, while it answers commands.
func (m *moody) silence(mute bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mute = mute
}

// onlyGreets has new connections greeted, and nothing else that the server says reaches the client any more. A leader
// that was cut off is such a server.
func (m *moody) onlyGreets() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mute, m.greets = true, true
}

func (m *moody) isMute(greeting bool) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mute && !(greeting && m.greets)
}

// cut ends all connections, and has no new ones, as a network that is gone.
func (m *moody) cut() {
	_ = m.listener.Close()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range m.conns {
		_ = c.Close()
	}
}

// answer has the next requests of the kind op answered with an error.
func (m *moody) answer(op uint32, times int, code int32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.op, m.left, m.code = op, times, code
}

// errors returns how many requests were answered with an error.
func (m *moody) errors() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.errs
}

// pass hands on what the client asks, unless it answers itself. The first packet asks for the connection.
func (m *moody) pass(from io.Reader, client, upstream net.Conn, writing *sync.Mutex) {
	defer upstream.Close()
	for first := true; ; first = false {
		packet, err := readPacket(from)
		if err != nil {
			return
		}
		var reply []byte
		if !first {
			reply = m.replyTo(packet)
		}
		if reply != nil {
			err = writePacket(client, reply, writing)
		} else {
			_, err = upstream.Write(packet)
		}
		if err != nil {
			return
		}
	}
}

// replyTo returns the error to answer a request with, or nil if the server is to see it. A packet is its length, the
// request's number in the connection and in the protocol, and more. A reply has the transaction and the error instead.
func (m *moody) replyTo(packet []byte) []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.left == 0 || len(packet) < 12 || binary.BigEndian.Uint32(packet[8:]) != m.op {
		return nil
	}
	m.left--
	if m.errs++; m.errs == 2 && m.second != nil {
		m.second()
	}
	reply := binary.BigEndian.AppendUint32(nil, 16)
	reply = append(reply, packet[4:8]...)
	reply = binary.BigEndian.AppendUint64(reply, 0)
	return binary.BigEndian.AppendUint32(reply, uint32(m.code))
}

func readPacket(from io.Reader) ([]byte, error) {
	packet := make([]byte, 4)
	if _, err := io.ReadFull(from, packet); err != nil {
		return nil, err
	}
	packet = append(packet, make([]byte, binary.BigEndian.Uint32(packet))...)
	_, err := io.ReadFull(from, packet[4:])
	return packet, err
}

func writePacket(to io.Writer, packet []byte, writing *sync.Mutex) error {
	writing.Lock()
	defer writing.Unlock()
	_, err := to.Write(packet)
	return err
}

// A server that throttles answers with an error on a connection that is sound. Nothing else would ever make the session
// ready, and its nodes would be in everybody's way.
func TestReconnection_ThatAServerAnswersWithAnError_IsMadeReadyOverTheSameConnection(t *testing.T) {
	t.Parallel()
	m := newMoody(t, sharedServer(t).Addr())
	d := open(t, []string{m.addr}, &Options{Root: freshRoot(), Timeout: time.Minute})
	r := request("lock")
	take(t, d, r)
	m.answer(opSetData, 2, codeThrottled)
	d.mu.Lock()
	s := d.session
	d.mu.Unlock()
	s.line.cut()
	var turn int
	soon(t, "the session to be ready again", func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		turn = s.turn
		return turn > 1 && s.link != nil
	})
	if n := m.errors(); n != 2 || turn != 2 {
		t.Errorf("the session is on its connection %d after %d errors", turn, n)
	}
	give(t, d, r)
}

// The same before there is a first link: New goes on asking, as long as it may.
func TestNew_AtAServerThatThrottles_AsksAgain(t *testing.T) {
	t.Parallel()
	m := newMoody(t, sharedServer(t).Addr())
	m.answer(opCreate, 2, codeThrottled)
	d := open(t, []string{m.addr}, &Options{Root: freshRoot(), Timeout: time.Minute})
	r := request("lock")
	take(t, d, r)
	give(t, d, r)
}

// An error that is for good is named, so that the operator has something to look for.
func TestNew_AtAServerThatAlwaysAnswersWithAnError_NamesIt(t *testing.T) {
	t.Parallel()
	m := newMoody(t, sharedServer(t).Addr())
	m.answer(opCreate, 1<<30, codeEphemeral)
	ctx, leave := context.WithCancel(bounded(t))
	defer leave()
	m.second = leave // when the first was noted
	d, err := New(ctx, []string{m.addr}, &Options{Root: freshRoot(), Timeout: time.Minute})
	if err == nil {
		_ = d.Close()
		t.Fatal("New says nothing")
	}
	if !strings.Contains(err.Error(), "-120") {
		t.Errorf("New says %v, want the server's error", err)
	}
}
