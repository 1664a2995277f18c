package main

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/interlock-go/interlock/internal/longrun"
	"github.com/interlock-go/interlock/internal/servers"
	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"
)

// sessionEngine is an engine whose holds end with a session. It wants a user, with enginePassword.
type sessionEngine struct {
	scheme, user string
	tail         string // of the URL, after the host
	start        func(t *testing.T) (addr string)
}

// enginePassword must not be seen in any output.
const enginePassword = "sesame"

var sessionEngines = []sessionEngine{
	// ZooKeeper lets everybody in, but the locks belong to those who know the password of the first.
	{"zk", "me", "/locks", func(t *testing.T) string { return servers.ZooKeeper(t) }},
	{"etcd", "root", "", func(t *testing.T) string {
		return servers.EtcdServer(t, &servers.EtcdOptions{Password: enginePassword}).Addr()
	}},
	{"mysql", "me", "/" + servers.MariaDBDatabase, func(t *testing.T) string {
		return servers.MariaDBServer(t, &servers.MariaDBOptions{SQL: []string{
			"CREATE USER 'me'@'%' IDENTIFIED BY '" + enginePassword + "';",
			"GRANT ALL ON *.* TO 'me'@'%';",
		}}).Addr()
	}},
	{"postgres", "postgres", "/postgres", func(t *testing.T) string {
		return servers.PostgresServer(t, &servers.PostgresOptions{Password: enginePassword}).Addr()
	}},
}

// TestScripts_OnEnginesWithSessions runs testdata/engines on each of them: the same commands, the same words. The
// scripts run at the same time on one server, so each has lock names of its own. For URLs of their own they have
// $SCHEME, $USER, $ADDR and $TAIL, and $GONE, an address that refuses connections. But for the first engine, only a
// long run runs them all; it has the command of the first under the race detector.
func TestScripts_OnEnginesWithSessions(t *testing.T) {
	for i, e := range sessionEngines {
		t.Run(e.scheme, func(t *testing.T) {
			t.Parallel()
			addr, gone := e.start(t), refusing(t)
			p := scripts("testdata/engines", i == 0 && longrun.On(), func(env *testscript.Env) error {
				url := fmt.Sprintf("%s://%s:%s@%s%s", e.scheme, e.user, enginePassword, addr, e.tail)
				if e.scheme == "postgres" {
					url += "?check=none" // servers for tests have no fsync, of which it would warn
				}
				env.Setenv("INTERLOCK_URL", url)
				for name, value := range map[string]string{
					"SCHEME": e.scheme, "USER": e.user, "ADDR": addr, "TAIL": e.tail, "GONE": gone,
				} {
					env.Setenv(name, value)
				}
				return nil
			})
			p.Condition = func(word string) (bool, error) { return word == e.scheme, nil }
			if i > 0 && !longrun.On() {
				p.Dir, p.Files = "", scriptsOf(p.Dir, []string{"run", "killed", "doctor", "urls"})
			}
			testscript.Run(t, p)
		})
	}
}

// refusing returns an address that nobody listens on, and nobody can while the test runs: its port is taken.
func refusing(t *testing.T) string {
	t.Helper()
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(socket) })
	local := netip.MustParseAddr("127.0.0.1")
	if err := unix.Bind(socket, &unix.SockaddrInet4{Addr: local.As4()}); err != nil {
		t.Fatal(err)
	}
	bound, err := unix.Getsockname(socket)
	if err != nil {
		t.Fatal(err)
	}
	return netip.AddrPortFrom(local, uint16(bound.(*unix.SockaddrInet4).Port)).String()
}
