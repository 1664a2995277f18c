package mysqllock

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servers"
)

func TestURL_IsRead(t *testing.T) {
	for raw, want := range map[string]string{
		"mysql://host/db":                           "tcp host:3306 / db interlock 30s 4 16 1m0s 0 false",
		"mysql://me:s%2F3%40@host:3307/db":          "tcp host:3307 me/s/3@ db interlock 30s 4 16 1m0s 0 false",
		"mysql://[::1]/db":                          "tcp [::1]:3306 / db interlock 30s 4 16 1m0s 0 false",
		"mysql://[::1]:3307/db":                     "tcp [::1]:3307 / db interlock 30s 4 16 1m0s 0 false",
		"mysql:///db":                               "tcp localhost:3306 / db interlock 30s 4 16 1m0s 0 false",
		"mysql://me@%2Frun%2Fmysqld%2Fm.sock/db":    "unix /run/mysqld/m.sock me/ db interlock 30s 4 16 1m0s 0 false",
		"mysql://h/db?table=l&shared=2&waits=3":     "tcp h:3306 / db l 30s 2 3 1m0s 0 false",
		"mysql://h/db?slice=5s&check=none&tls=true": "tcp h:3306 / db interlock 30s 4 16 5s 2 true",
	} {
		config, opts, err := read(raw)
		if err != nil {
			t.Errorf("%s: %v", raw, err)
			continue
		}
		o, err := opts.withDefaults()
		if err != nil {
			t.Errorf("%s: %v", raw, err)
		}
		got := strings.Join([]string{
			config.Net, config.Addr, config.User + "/" + config.Passwd, config.DBName, o.Table, o.Timeout.String(),
			uintText(uint64(o.Shared)),
			uintText(uint64(o.Waits)), o.Slice.String(), uintText(uint64(o.Check)),
			map[bool]string{true: "true", false: "false"}[config.TLS != nil],
		}, " ")
		if got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", raw, got, want)
		}
	}
}

func TestURL_IsRefusedWithAReason_AndWithoutThePassword(t *testing.T) {
	for raw, says := range map[string]string{
		"mysql://me:hunter2@h":        "the path names the database",
		"mysql://me:hunter2@h/a/b":    "the path names the database",
		"mysql://me:hunter2@h1,h2/db": "name one server",
		"mysql://me:hunter2@h/db?tabel=x": "this engine takes ca, cert, check, key, readonly, shared, slice, " +
			"table, tls, waits",
		"mysql://me:hunter2@h/db?check=maybe":          "warn, refuse or none",
		"mysql://me:hunter2@h/db?shared=0":             "at least 1",
		"mysql://me:hunter2@h/db?slice=1":              "positive duration",
		"mysql://me:hunter2@h/db?table=A":              "lower-case",
		"mysql://me:hunter2@h/db?ca=x":                 "write tls=true",
		"mysql://me:hunter2@h/db?tls=true&ca=/nowhere": "no such file",
		"mysql://me:hunter2@h/db?tls=true&cert=x":      "go together",
		"mysql://me:hunter2@h:x/db":                    "number from 1 to 65535",
		"mysql://me:hunter2@h:1:2/db":                  "IPv6",
		"mysql://me:hunter2@:3306/db":                  "a host is empty",
		"mysql://me:hunt/er2@h/db":                     "write a / inside a user or password as %2F",
		"mysql://me:hunt?er2@h/db":                     "",
	} {
		_, _, err := read(raw)
		switch {
		case err == nil:
			t.Errorf("%s is taken", raw)
		case !strings.Contains(err.Error(), says):
			t.Errorf("%s: %v, want an error with %q", raw, err, says)
		case strings.Contains(err.Error(), "er2"):
			t.Errorf("%s: the error shows the password: %v", raw, err)
		}
	}
}

// read is fromURL of a text.
func read(raw string) (*mysql.Config, *Options, error) {
	u, err := driver.ParseURL(raw)
	if err != nil {
		return nil, nil, err
	}
	return fromURL(u, driver.Config{Lease: 30 * time.Second})
}

func TestOpen_SaysWhatToDo(t *testing.T) {
	n := servers.MariaDBServer(t, &servers.MariaDBOptions{TLS: true, SQL: []string{
		"CREATE USER bob@'%' IDENTIFIED BY 'hunter2';", "GRANT ALL ON " + servers.MariaDBDatabase + ".* TO bob@'%';",
	}})
	tls := "?tls=true&ca=" + n.CAFile()
	at := n.Addr() + "/"
	for url, says := range map[string]string{
		"mysql://bob:hunter2@" + at + "interlock":              "tls=true",
		"mysql://bob:hunter2@" + at + "interlock?tls=true":     "ca=/path/ca.crt",
		"mysql://bob:hunter3@" + at + "interlock" + tls:        "user or password is wrong",
		"mysql://bob:hunter2@" + at + "mysql" + tls:            "rights",
		"mysql://bob:hunter2@127.0.0.1:1/interlock?check=none": "connection refused",
	} {
		_, err := interlock.Open(patient(t), url, nil)
		if err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "hunter") {
			t.Errorf("%s: %v, want an error with %q", url, err, says)
		}
		if !errors.Is(err, interlock.ErrUnavailable) {
			t.Errorf("%s: %v does not match ErrUnavailable", url, err)
		}
		if refused := strings.Contains(says, "rights") ||
			strings.Contains(says, "password"); refused != (driver.Refusal(err) != nil) &&
			!strings.Contains(says, "tls=true") {
			t.Errorf("%s: %v is a refusal: %v", url, err, !refused)
		}
	}
	c := openLocks(t, "mysql://bob:hunter2@"+at+"interlock"+tls, nil)
	mustUnlock(t, mustLock(t, c, "encrypted"))
}
