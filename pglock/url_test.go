package pglock

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servers"
)

func parse(t *testing.T, raw string) *driver.URL {
	t.Helper()
	u, err := driver.ParseURL(raw)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestURL_OfASocket_NamesItsFolder(t *testing.T) {
	socket, _, err := fromURL(parse(t, "postgres://%2Frun%2Fpostgresql/locks"), driver.Config{})
	if err != nil || socket.Host != "/run/postgresql" || socket.Database != "locks" {
		t.Errorf("the folder of a socket is read as %+v, %v", socket, err)
	}
}

func TestURL_IsReadCompletely(t *testing.T) {
	config, o, err := fromURL(parse(t,
		"postgres://me:p%27%5C%20w@h1:6000,[::1]/locks?table=app.locks&shared=2&waits=3&slice=5s&check=refuse"+
			"&sslmode=disable"),
		driver.Config{Lease: 7 * time.Second, Client: "host:1"})
	if err != nil {
		t.Fatal(err)
	}
	if config.Host != "h1" || config.Port != 6000 || config.User != "me" || config.Password != `p'\ w` ||
		config.Database != "locks" {
		t.Errorf("got %s:%d as %s with %q, database %s", config.Host, config.Port, config.User, config.Password,
			config.Database)
	}
	if len(config.Fallbacks) != 1 || config.Fallbacks[0].Host != "::1" || config.Fallbacks[0].Port != defaultPort ||
		config.ValidateConnect == nil {
		t.Errorf("the second host is %+v", config.Fallbacks)
	}
	if config.RuntimeParams["application_name"] != "interlock host:1" {
		t.Errorf("the application is called %q", config.RuntimeParams["application_name"])
	}
	got := []any{o.Table, o.Shared, o.Waits, o.Slice, o.Check, o.Timeout}
	if want := []any{"app.locks", 2, 3, 5 * time.Second, CheckRefuse, 7 * time.Second}; !slices.Equal(got, want) {
		t.Errorf("the options are %v, want %v", got, want)
	}
}

func TestURL_ErrorsSayWhatIsWrongAndShowNoPassword(t *testing.T) {
	for raw, says := range map[string]string{
		"postgres://me:hunter2@h/db?tabel=x":                "this engine takes check, readonly, shared, slice",
		"postgres://me:hunter2@h/db?check=perhaps":          "warn, refuse or none",
		"postgres://me:hunter2@h/db?table=Locks":            "lower-case",
		"postgres://me:hunter2@h/db?slice=1ms":              "slice",
		"postgres://me:hunter2@h/db?waits=0":                "at least 1",
		"postgres://me:hunter2@h/db?shared=5000":            "shared",
		"postgres://me:hunter2@h:x/db":                      "port",
		"postgres://me:hunter2@a:b:c/db":                    "brackets",
		"postgres://me:hunter2@:5432/db":                    "empty",
		"postgres://me:hunter2@h/a/b":                       "path",
		"postgres://me:hun/ter2@h/db":                       "%2F",
		"postgres://me:hun?ter2@h/db":                       "%3F",
		"postgres://me:hunter2@h/db?sslmode=perhaps":        "sslmode",
		"postgres://me:hunter2@h/db?sslcert=/x":             "go together",
		"postgres://me:hunter2@h/db?sslrootcert=/not/there": "/not/there",
	} {
		_, _, err := fromURL(parse(t, raw), driver.Config{})
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: got %v, want an error that says %q", raw, err, says)
			continue
		}
		if strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "ter2") {
			t.Errorf("%s: the error shows the password: %v", raw, err)
		}
	}
}

func TestURL_WithPasswordAndTLS(t *testing.T) {
	o := &servers.PostgresOptions{Password: "s3cr3t/%", TLS: true}
	n := servers.PostgresServer(t, o)
	ca, cert, key := n.CertificateFiles()
	base := "postgres://postgres:s3cr3t%2F%25@" + n.Addr() + "/postgres?check=none"
	for query, says := range map[string]string{
		"&sslmode=verify-full&sslrootcert=" + ca:                                         "",
		"&sslmode=verify-full&sslrootcert=" + ca + "&sslcert=" + cert + "&sslkey=" + key: "",
		"&sslmode=require":     "",
		"&sslmode=disable":     "sslmode=require",
		"&sslmode=verify-full": "sslrootcert=",
	} {
		d, err := driver.DefaultMux.Open(t.Context(), base+query, driver.Config{})
		if err == nil {
			r := request("x", "1")
			acquire(t, d.(*Driver), r)
			release(t, d.(*Driver), r)
			_ = d.Close()
		}
		if says == "" != (err == nil) || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%s: got %v, want an error that says %q", query, err, says)
		}
		if err != nil && strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("%s: the error shows the password: %v", query, err)
		}
	}
	wantAdvice(t, n.Addr())
}

// wantAdvice wants what is wrong with a URL to be said.
func wantAdvice(t *testing.T, addr string) {
	t.Helper()
	for raw, says := range map[string]string{
		"postgres://postgres:wrong@" + addr + "/postgres":                 "user or password is wrong",
		"postgres://postgres@" + addr + "/postgres":                       "wants a password",
		"postgres://" + addr + "/postgres":                                "the URL names no user",
		"postgres://postgres:s3cr3t%2F%25@" + addr + "/missing":           "must exist",
		"postgres://postgres@127.0.0.1:1,127.0.0.1:2/postgres":            "cannot use 127.0.0.1:1,127.0.0.1:2: ",
		"postgres://postgres@127.0.0.1:1/postgres":                        "is the address right",
		"postgres://postgres@%2Fnot%2Fthere/postgres":                     "cannot use /not/there: ",
		"postgres://postgres:s3cr3t%2F%25@[::1]:1/postgres?sslmode=allow": "cannot use [::1]:1: ",
	} {
		_, err := driver.DefaultMux.Open(t.Context(), raw, driver.Config{})
		if err == nil || !strings.Contains(err.Error(), says) || !errors.Is(err, driver.ErrUnavailable) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v, want an error on one line that says %q", raw, err, says)
			continue
		}
		if refused := !strings.Contains(says, "cannot use") &&
			!strings.Contains(says, "address"); refused != (driver.Refusal(err) != nil) {
			t.Errorf("%s: %v is a refusal: %v", raw, err, !refused)
		}
		seen := make(map[string]bool)
		for _, attempt := range strings.Split(err.Error(), "; ") {
			if seen[attempt] {
				t.Errorf("%s: the error says %q twice", raw, attempt)
			}
			seen[attempt] = true
		}
	}
}

// A server that does not encrypt is asked without encryption in the next attempt, which is what matters.
func TestOpenError_DoesNotSpeakOfAttemptsThatWereMadeAgain(t *testing.T) {
	n := servers.PostgresServer(t, &servers.PostgresOptions{Password: "s3cr3t"})
	for query, tls := range map[string]bool{"": false, "?sslmode=prefer": false, "?sslmode=require": true} {
		_, err := driver.DefaultMux.Open(t.Context(), "postgres://postgres:wrong@"+n.Addr()+"/postgres"+query,
			driver.Config{})
		if err == nil || strings.Contains(err.Error(), "TLS") != tls ||
			strings.Contains(err.Error(), "password is wrong") == tls {
			t.Errorf("%q: %v", query, err)
		}
	}
}

func TestNew_WithoutAConfiguration_SaysSo(t *testing.T) {
	if _, err := New(t.Context(), nil, nil); err == nil ||
		!strings.Contains(err.Error(), "postgres: there is no configuration") {
		t.Errorf("got %v", err)
	}
}

// A server whose system has no tcp_user_timeout ends the session of a silent client by its keep-alives. Its holder
// trusts the hold for the timeout, so they must not be over before.
func TestKeepAlives_OfTheServer_LastForTheTimeout(t *testing.T) {
	for timeout := time.Second; timeout < time.Minute; timeout += 100 * time.Millisecond {
		set := make(map[string]int)
		for _, p := range (&Driver{opts: Options{Timeout: timeout}}).settings(false) {
			set[p.name], _ = strconv.Atoi(p.value)
		}
		silent := set["tcp_keepalives_idle"] + set["tcp_keepalives_interval"]*set["tcp_keepalives_count"]
		if got := time.Duration(silent) * time.Second; got < timeout {
			t.Fatalf("with a timeout of %v the server gives a silent client up after %v", timeout, got)
		}
	}
}
