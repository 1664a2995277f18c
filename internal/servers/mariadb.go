package servers

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// MariaDBDatabase is the database that each MariaDB of this package has, beside its own.
const MariaDBDatabase = "interlock"

// MariaDB starts a MariaDB and returns its host:port. The user is root, without a password.
func MariaDB(t testing.TB) string {
	t.Helper()
	return MariaDBServer(t, nil).Addr()
}

// MariaDBOptions say what differs from a MariaDB without passwords and encryption.
type MariaDBOptions struct {
	// SQL is run before the server starts for the first time, each statement on a line of its own,
	// as in "CREATE USER ...;".
	SQL []string

	// TLS makes the server speak TLS too, with a certificate of an authority made for the test. It refuses clients
	// without it that do not come over a local socket.
	TLS bool

	// Galera makes the server the only node of a Galera cluster. The test is skipped if there is no library for that.
	Galera bool

	// Args are further arguments of the program, as in "--wait-timeout=60".
	Args []string

	// Disk, if not nil, is where the server keeps its data.
	Disk *Disk

	// Clock, if not nil, is the wall clock that the server sees.
	Clock *Clock

	_ struct{}
}

// MariaDBNode is one MariaDB that was started. It finds its data again after [Server.Restart], and waits for the disk
// at each commit, as servers do by default.
type MariaDBNode struct {
	*Server
	certs *certificates // nil without TLS
}

// galeraLibraries are where distributions put what makes a cluster of servers.
var galeraLibraries = []string{
	"/usr/lib/galera/libgalera_smm.so", "/usr/lib64/galera/libgalera_smm.so", "/usr/lib64/galera-4/libgalera_smm.so",
}

// MariaDBServer starts a MariaDB as o says; nil is the zero value.
func MariaDBServer(t testing.TB, o *MariaDBOptions) *MariaDBNode {
	t.Helper()
	if o == nil {
		o = &MariaDBOptions{}
	}
	n := &MariaDBNode{}
	if o.TLS {
		n.certs = newCertificates(t)
	}
	spec := Spec{
		Name:     "mariadb",
		Binaries: []string{"mariadbd", "/usr/sbin/mariadbd", "/usr/libexec/mariadbd", "/usr/local/sbin/mariadbd"},
		Install:  "mariadb-server (Debian, Ubuntu) or mariadb (Homebrew)",
		Args:     func(s Site) []string { return append(append(n.args(s), mariaDBTemporary(s, o)...), o.Args...) },
		Ready:    func(ctx context.Context, s Site) error { return mariaDBServes(ctx, s.addr(0)) },
		Prepare:  func(ctx context.Context, s Site) error { return mariaDBPrepare(ctx, s, o.SQL) },
		Disk:     o.Disk, Env: o.Clock.env(),
	}
	if o.Galera {
		library := firstThatExists(galeraLibraries)
		if library == "" {
			t.Skip("there is no Galera library: install galera-4 (Debian, Ubuntu)")
		}
		spec.Ports = 3
		args := spec.Args
		spec.Args = func(s Site) []string { return append(args(s), galeraArgs(s, library)...) }
	}
	n.Server = Start(t, spec)
	return n
}

func firstThatExists(paths []string) string {
	for _, path := range paths {
		if exists(path) {
			return path
		}
	}
	return ""
}

// TLS returns how a client connects, or nil if the server does not speak TLS.
func (n *MariaDBNode) TLS() *tls.Config { return n.certs.config() }

// CAFile returns the path of the authority's certificate in PEM, for programs that are not given a [tls.Config], or "".
func (n *MariaDBNode) CAFile() string {
	ca, _, _ := n.certs.files()
	return ca
}

// mariaDBSmall makes a server small and quick to start. The settings of the data files must be the same at each start.
var mariaDBSmall = []string{
	"--innodb-buffer-pool-size=8M", "--innodb-log-file-size=4M", "--innodb-doublewrite=OFF",
	"--innodb-buffer-pool-dump-at-shutdown=OFF", "--innodb-buffer-pool-load-at-startup=OFF", "--key-buffer-size=64K",
	"--aria-pagecache-buffer-size=1M", "--performance-schema=OFF",
}

func (n *MariaDBNode) args(s Site) []string {
	// Paths that are not absolute are below the data folder: that of a socket may have only a hundred bytes.
	args := append([]string{
		"--no-defaults", "--datadir=" + mariaDBData(s), "--bind-address=" + s.Host,
		"--port=" + strconv.Itoa(s.Ports[0]), "--socket=s.sock", "--pid-file=pid", "--skip-name-resolve",
		"--skip-log-bin", "--max-connections=2500", "--max-connect-errors=1000000", "--thread-cache-size=50",
		"--thread-stack=192K",
	}, mariaDBSmall...)
	if os.Geteuid() == 0 { // it refuses to run as root unless it is told to
		args = append(args, "--user=root")
	}
	if n.certs != nil {
		args = append(args, "--ssl-ca="+n.certs.ca, "--ssl-cert="+n.certs.cert, "--ssl-key="+n.certs.key,
			"--require-secure-transport=ON")
	}
	return args
}

// mariaDBTemporary gives a server a place of its own for temporary files: one that starts deletes those of all others
// from the system's. Where the disk must be full or slow, that is about the data alone.
func mariaDBTemporary(s Site, o *MariaDBOptions) []string {
	if o.Disk != nil {
		return nil
	}
	return []string{"--tmpdir=" + s.Dir}
}

func mariaDBData(s Site) string { return filepath.Join(s.Dir, "data") }

// galeraArgs make a cluster of one node. Its second port is for other nodes, the third for copies of the data.
func galeraArgs(s Site, library string) []string {
	return []string{
		"--wsrep-on=ON", "--wsrep-provider=" + library, "--wsrep-cluster-address=gcomm://",
		"--wsrep-node-address=" + s.Host,
		"--wsrep-provider-options=gmcast.listen_addr=tcp://" + s.addr(1) + ";ist.recv_addr=" + s.addr(2) +
			";gcache.size=1M",
		"--binlog-format=ROW", "--innodb-autoinc-lock-mode=2",
	}
}

// mariaDBServes reads the server's greeting, which comes when it serves: protocol version 10 and the rest, or an error.
func mariaDBServes(ctx context.Context, addr string) error {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	if end, bounded := ctx.Deadline(); bounded {
		_ = conn.SetDeadline(end)
	}
	in := bufio.NewReader(conn)
	var head [5]byte // three bytes of length, a number, and the first byte of the packet
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return err
	}
	switch head[4] {
	case 10:
		return nil
	case 0xff:
		rest := make([]byte, int(head[0])|int(head[1])<<8-1)
		_, _ = io.ReadFull(in, rest) // it is only for the message
		return fmt.Errorf("it says %q", rest)
	}
	return errors.New("it does not speak MySQL's protocol")
}
