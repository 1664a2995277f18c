package servers

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
)

// Postgres starts a PostgreSQL and returns its host:port. Its user and database are named postgres, and nobody needs a
// password.
func Postgres(t testing.TB) string {
	t.Helper()
	return PostgresServer(t, nil).Addr()
}

// PostgresOptions say what differs from a PostgreSQL without passwords and TLS that does not wait for the disk.
type PostgresOptions struct {
	// Password is the one of the user postgres. If there is one, everybody needs one.
	Password string

	// TLS makes the server speak TLS only, with a certificate of an authority made for the test.
	TLS bool

	// Config holds parameters of postgresql.conf, as in "max_connections": "50".
	Config map[string]string

	// Disk, if not nil, is where the server keeps its data.
	Disk *Disk

	// Clock, if not nil, is the wall clock that the server sees.
	Clock *Clock

	_ struct{}
}

// PostgresNode is one PostgreSQL that was started. It keeps its data over [PostgresNode.Restart].
//
// The server is a family of processes, one for each connection, so its fates are other than those of a [Server] alone:
// what they do is done to all of the family.
type PostgresNode struct {
	*Server
	t     testing.TB
	certs *certificates // nil without TLS
}

const (
	postgresUser = "postgres"
	postgresData = "data"
)

// PostgresServer starts a PostgreSQL as o says; nil is the zero value. Nothing is written through to the disk, unless
// Config says fsync: only a loss of power would show that.
//
// PostgreSQL refuses to run as root, so root runs it as the user postgres, or as nobody where there is none.
func PostgresServer(t testing.TB, o *PostgresOptions) *PostgresNode {
	t.Helper()
	if o == nil {
		o = &PostgresOptions{}
	}
	n := &PostgresNode{t: t}
	if o.TLS {
		n.certs = newCertificates(t)
	}
	spec := Spec{
		Name: "postgres", Binaries: postgresBinaries(), Install: "postgresql (Debian, Ubuntu, Homebrew)",
		Ready: func(ctx context.Context, s Site) error { return postgresServes(ctx, s.addr(0)) }, Disk: o.Disk,
		Env: o.Clock.env(),
	}
	as := postgresRunner()
	binary := spec.find(t)
	if len(as) > 0 {
		spec.Binaries = as[:1]
	}
	spec.Args = func(s Site) []string { return as.args(binary, o.args(s, n.certs)...) }
	spec.Prepare = func(ctx context.Context, s Site) error { return n.prepare(ctx, s, o, as, filepath.Dir(binary)) }
	n.Server = Start(t, spec)
	t.Cleanup(n.Kill) // before the Server's own end, which would leave the family to itself
	return n
}

// postgresBinaries are what the server may be called. Debian has it outside of PATH, one folder for each version.
func postgresBinaries() []string {
	versions, _ := filepath.Glob("/usr/lib/postgresql/*/bin/postgres") // the pattern is well formed
	slices.SortFunc(versions, func(a, b string) int { return postgresVersion(b) - postgresVersion(a) })
	return append([]string{"postgres"}, versions...)
}

// postgresVersion is N of /usr/lib/postgresql/N/bin/postgres.
func postgresVersion(path string) int {
	n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path)))) // 0 is fine for what is no number
	return n
}

// prepare makes the server's data, which belong to the user that it runs as.
func (n *PostgresNode) prepare(ctx context.Context, s Site, o *PostgresOptions, as postgresAs, bin string) error {
	data := filepath.Join(s.Dir, postgresData)
	if err := os.Mkdir(data, 0o700); err != nil {
		return err
	}
	password := filepath.Join(s.Dir, "password")
	if err := os.WriteFile(password, []byte(o.Password+"\n"), 0o600); err != nil {
		return err
	}
	if err := errors.Join(as.own(s.Dir, data, password), as.lend(o.Clock)); err != nil {
		return err
	}
	args := []string{
		"-D", data, "-U", postgresUser, "-E", "UTF8", "--locale=C", "--no-sync", "--no-instructions", "--auth",
	}
	if o.Password == "" {
		args = append(args, "trust")
	} else {
		args = append(args, "scram-sha-256", "--pwfile", password)
	}
	line := append(slices.Clone([]string(as)), filepath.Join(bin, "initdb"))
	line = append(line, args...)
	cmd := exec.CommandContext(ctx, line[0], line[1:]...)
	cmd.Dir = s.Dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w: %s", err, out)
	}
	if n.certs == nil {
		return nil
	}
	return n.protect(data, as)
}

// protect gives the server its certificate, whose key nobody else may read, and refuses who does not encrypt.
func (n *PostgresNode) protect(data string, as postgresAs) error {
	for from, to := range map[string]string{
		n.certs.cert: "server.crt", n.certs.key: "server.key", n.certs.ca: "root.crt",
	} {
		text, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		path := filepath.Join(data, to)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			return err
		}
		if err := as.own("", path); err != nil {
			return err
		}
	}
	path := filepath.Join(data, "pg_hba.conf")
	rules, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return os.WriteFile(path, append([]byte("hostnossl all all all reject\n"), rules...), 0o600)
}

// args are the server's arguments.
func (o *PostgresOptions) args(s Site, certs *certificates) []string {
	set := map[string]string{
		"listen_addresses": s.Host, "port": strconv.Itoa(s.Ports[0]), "unix_socket_directories": "",
		"fsync": "off", "shared_buffers": "32MB", "max_connections": "200", "max_wal_senders": "0",
		"wal_level": "minimal",
	}
	if certs != nil {
		set["ssl"], set["ssl_ca_file"] = "on", "root.crt"
	}
	maps.Copy(set, o.Config)
	args := []string{"-D", filepath.Join(s.Dir, postgresData)}
	for _, name := range slices.Sorted(maps.Keys(set)) {
		args = append(args, "-c", name+"="+set[name])
	}
	return args
}

// URL returns an address for [github.com/interlock-go/interlock.Open], of the database postgres.
func (n *PostgresNode) URL(o *PostgresOptions) string {
	user := postgresUser
	if o != nil && o.Password != "" {
		user += ":" + o.Password
	}
	return "postgres://" + user + "@" + n.Addr() + "/postgres"
}

// TLS returns what a client needs to connect, or nil without TLS.
func (n *PostgresNode) TLS() *tls.Config { return n.certs.config() }

// CertificateFiles returns the paths of the authority's certificate and of the client's own, with its key, in PEM.
func (n *PostgresNode) CertificateFiles() (ca, cert, key string) { return n.certs.files() }
