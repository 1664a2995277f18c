// Package host starts the servers of an example, those of the machine on free ports of loopback with data of their own,
// and says what to install where one is missing.
package host

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/internal/servers"
)

// The servers that examples use.
const (
	Redis    = "redis"
	MariaDB  = "mariadb"
	Postgres = "postgres"
)

// Servers are those that run, by name.
type Servers struct {
	Addrs map[string]string // host:port

	stage *servers.Stage
}

// Start starts the named servers. Those that are not installed are left out; what to install is in missing.
func Start(names ...string) (s *Servers, missing, err error) {
	stage, err := servers.NewStage()
	if err != nil {
		return nil, nil, err
	}
	s = &Servers{Addrs: map[string]string{}, stage: stage}
	for _, name := range names {
		err := stage.Play(func(t testing.TB) { s.Addrs[name] = Addr(t, name) })
		switch {
		case errors.Is(err, servers.ErrMissing):
			missing = errors.Join(missing, err)
		case err != nil:
			return nil, nil, errors.Join(err, stage.Close())
		}
	}
	return s, missing, nil
}

// Addr starts the named server for t and returns its host:port.
func Addr(t testing.TB, name string) string {
	t.Helper()
	switch name {
	case Redis:
		return servers.Redis(t)
	case MariaDB:
		return servers.MariaDB(t)
	case Postgres:
		return servers.Postgres(t)
	}
	t.Fatalf("there is no server %q", name)
	return ""
}

// Close ends the servers.
func (s *Servers) Close() error { return s.stage.Close() }

// Pick checks a list of names, separated by commas, against those that an example knows.
func Pick(list string, known ...string) ([]string, error) {
	var names []string
	for name := range strings.SplitSeq(list, ",") {
		name = strings.TrimSpace(name)
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("%q is none of %s", name, strings.Join(known, ", "))
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names, nil
}

// LockURL is how interlock opens a server as an engine.
func LockURL(name, addr string) string {
	switch name {
	case MariaDB:
		return "mysql://root@" + addr + "/" + servers.MariaDBDatabase
	case Postgres:
		return "postgres://postgres@" + addr + "/postgres"
	default:
		return "redis://" + addr
	}
}

// SQL returns the driver of database/sql and the data source for a server.
func SQL(name, addr string) (driver, source string) {
	if name == MariaDB {
		return "mysql", "root@tcp(" + addr + ")/" + servers.MariaDBDatabase + "?clientFoundRows=true"
	}
	return "pgx", "postgres://postgres@" + addr + "/postgres?sslmode=disable"
}
