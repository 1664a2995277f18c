package servers

import (
	"errors"
	"fmt"
	"net"
	"os"
	"testing"
)

// NewProxyInPlace starts a proxy for the processes of a member of a [Network], in the place of a server of the network:
// they find the proxy at the server's own address. So it is of use also before servers that tell clients where they
// are, as the nodes of a Redis Cluster and of a Sentinel deployment do. What it sends comes from the member, as of
// [NewProxyAt]. The member may not be nil.
func NewProxyInPlace(t testing.TB, at *Member, target string) *Proxy {
	t.Helper()
	p := newProxy(t, at, target)
	p.addr = target
	ip, _, err := net.SplitHostPort(target)
	if err == nil {
		err = at.takePlace(ip)
	}
	if err == nil {
		err = p.listen()
	}
	if err != nil {
		t.Fatalf("proxy: %v", err)
	}
	t.Cleanup(p.close)
	return p
}

// takePlace gives the member a server's address, too: what its processes send there stays inside, and comes from that
// same address. What a proxy sends is bound to the member's own address, and routed on to the server; so is all that
// belongs to that connection, also a reset.
func (m *Member) takePlace(ip string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.places[ip] {
		return nil
	}
	var lines []string
	if m.places == nil {
		if err := m.hearItself(); err != nil {
			return err
		}
		m.places = map[string]bool{}
		lines = append(lines, fmt.Sprintf("rule add pref 1 from %s lookup %d", m.addr, passing),
			"rule add pref 2 lookup local", "rule delete pref 0")
	}
	lines = append(lines, "address add "+ip+"/32 dev lo",
		fmt.Sprintf("route add %s via %s table %d", ip, m.router, passing))
	if err := m.room.ip(lines...); err != nil {
		return err
	}
	m.places[ip] = true
	return nil
}

// passing is the number of the table of routes for what a proxy sends.
const passing = 198

// hearItself has the member hear a server whose place it has taken, although that has one of the member's addresses
// now.
func (m *Member) hearItself() error {
	var errs []error
	m.room.do(func() {
		for name, value := range map[string]string{"accept_local": "1", "rp_filter": "0"} {
			for _, of := range []string{"all", "eth0"} {
				errs = append(errs, os.WriteFile("/proc/sys/net/ipv4/conf/"+of+"/"+name, []byte(value), 0))
			}
		}
	})
	return errors.Join(errs...)
}
