package servers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Network is a network of its own for the members of an ensemble, and for clients, which can be cut into parts that do
// not hear each other. What is not heard is lost without a word, as behind a cable that was pulled. This process is
// beside the network and always hears all.
//
// Each member is in a network namespace with an address; a further namespace with a router joins them. This process's
// own network has one interface more (il-N) and a route to 198.18.N.0/24, a range for tests (RFC 2544), while the
// network lasts: until t ends, and at the latest until this process and what it has started are gone.
type Network struct {
	t      testing.TB
	router *room
	number int

	mu      sync.Mutex // guards what follows; held while the network is changed
	members int
	cuts    []string // the rules of the router that are in force
}

// Member is one place in a [Network].
type Member struct {
	room   *room
	addr   string
	router string

	mu     sync.Mutex      // guards places
	places map[string]bool // the addresses of servers in whose place it has proxies
}

const (
	// mostNetworks is how many there can be on a machine at once, and mostMembers how many members one has.
	mostNetworks, mostMembers = 200, 200

	// The last bytes of addresses: those of the router, of this process and of the first member.
	routerByte, hostByte, firstByte = 1, 2, 10
)

// NewNetwork returns a network without members, or skips t where [Apart] says that there can be none.
func NewNetwork(t testing.TB) *Network {
	t.Helper()
	apart(t)
	n, err := openNetwork()
	if err != nil {
		t.Fatalf("a network: %v", err)
	}
	n.t = t
	t.Cleanup(n.router.close)
	return n
}

// openNetwork returns a network with a number that nobody else has.
func openNetwork() (*Network, error) {
	for number := range mostNetworks {
		// a number that is no port of any server, which is kept from other processes in the same way
		if !reserve(number) {
			continue
		}
		n := &Network{number: number}
		if err := n.open(); err == nil {
			return n, nil
		} else if !strings.Contains(err.Error(), "File exists") { // otherwise somebody else has the number
			return nil, err
		}
	}
	return nil, fmt.Errorf("there are %d already", mostNetworks)
}

// tryNetwork reports whether there may be a network that can be cut.
func tryNetwork() error {
	n, err := openNetwork()
	if err != nil {
		return err
	}
	defer n.router.close()
	a, b := &Member{addr: n.at(firstByte)}, &Member{addr: n.at(firstByte + 1)}
	return n.Cut([]*Member{a}, []*Member{b})
}

// open makes the router, and a way between it and this process.
func (n *Network) open() (err error) {
	if n.router, err = newNetRoom(); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			n.router.close()
		}
	}()
	host, router, link := n.at(hostByte), n.at(routerByte), fmt.Sprint("il-", n.number)
	err = n.router.ip(
		"link set lo up",
		"address add "+router+"/32 dev lo",
		fmt.Sprintf("link add uplink type veth peer name %s netns %d", link, os.Getpid()),
		"link set uplink up",
	)
	if err != nil {
		return err
	}
	err = (*room)(nil).ip(
		"address add "+host+"/32 dev "+link,
		"link set "+link+" up",
		"route add "+router+" dev "+link+" src "+host,
		"route add "+n.at(0)+"/24 via "+router+" dev "+link+" src "+host,
	)
	if err != nil {
		return err
	}
	n.router.do(func() { err = os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0) })
	return errors.Join(err, n.router.ip("route add "+host+" dev uplink"))
}

func (n *Network) at(last int) string { return fmt.Sprintf("198.18.%d.%d", n.number, last) }

// Host returns the address of this process for members.
func (n *Network) Host() string { return n.at(hostByte) }

// Join returns a new member, which lasts as long as the network.
func (n *Network) Join(t testing.TB) *Member {
	t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.members == mostMembers {
		t.Fatalf("a network has %d members at most", mostMembers)
	}
	r, err := newNetRoom()
	if err != nil {
		t.Fatalf("a member of a network: %v", err)
	}
	m := &Member{room: r, addr: n.at(firstByte + n.members), router: n.at(routerByte)}
	n.members++
	n.t.Cleanup(r.close)
	router, link := m.router, fmt.Sprint("to", n.members)
	err = n.router.ip("link add "+link+" type veth peer name eth0 netns "+r.number(), "link set "+link+" up")
	if err == nil {
		err = r.ip("link set lo up", "link set eth0 up", "address add "+m.addr+"/32 dev eth0",
			"route add "+router+" dev eth0", "route add default via "+router)
	}
	if err == nil {
		err = n.router.ip("route add " + m.addr + " dev " + link)
	}
	if err != nil {
		t.Fatalf("a member of a network: %v", err)
	}
	return m
}

// Split cuts the network into parts. Nothing passes from one to another any more, in either direction, but all of it
// does within each; a member that is in none hears all. It replaces the parts that there were.
func (n *Network) Split(parts ...[]*Member) error {
	var cuts []string
	for i, part := range parts {
		for j, other := range parts {
			if i != j {
				cuts = append(cuts, between(part, other)...)
			}
		}
	}
	return n.change(cuts)
}

// Cut loses what one part sends to the other, in this direction alone.
func (n *Network) Cut(from, to []*Member) error { return n.change(between(from, to)) }

// Heal lets everything pass again.
func (n *Network) Heal() error { return n.change(nil) }

// change puts other rules into force.
func (n *Network) change(cuts []string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	var lines []string
	for _, cut := range cuts {
		if !slices.Contains(n.cuts, cut) {
			lines = append(lines, "rule add "+cut)
		}
	}
	for _, cut := range n.cuts {
		if !slices.Contains(cuts, cut) {
			lines = append(lines, "rule delete "+cut)
		}
	}
	if len(lines) == 0 {
		return nil
	}
	if err := n.router.ip(lines...); err != nil {
		return err
	}
	n.cuts = cuts
	return nil
}

// between are the rules that lose what one part sends to the other.
func between(from, to []*Member) (cuts []string) {
	for _, a := range from {
		for _, b := range to {
			cuts = append(cuts, "from "+a.addr+" to "+b.addr+" blackhole")
		}
	}
	return cuts
}

// Addr returns the member's address, without a port.
func (m *Member) Addr() string { return m.addr }

// Start starts a program that is not one of this package's servers as the member, or anywhere if m is nil. Given to
// childproc.Start, it has the program killed when the network ends, or this process: a member is a
// thread, and ends with both.
func (m *Member) Start(cmd *exec.Cmd) error {
	return m.inside().start(cmd)
}

// dial connects from the member, or from anywhere if m is nil.
func (m *Member) dial(ctx context.Context, addr string) (net.Conn, error) {
	if m == nil {
		return new(net.Dialer).DialContext(ctx, "tcp", addr)
	}
	return m.room.dial(m.addr, addr)
}

// inside is the room of a member, and nil for nobody.
func (m *Member) inside() *room {
	if m == nil {
		return nil
	}
	return m.room
}
