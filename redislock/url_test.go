package redislock

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/pace"
	"github.com/interlock-go/interlock/internal/servers"
	"github.com/interlock-go/interlock/redislock/conn"
	"github.com/redis/rueidis"
)

// readURL is what an opener does before it connects.
func readURL(t *testing.T, raw string) (rueidis.ClientOption, *Options, error) {
	t.Helper()
	u, err := driver.ParseURL(raw)
	if err != nil {
		return rueidis.ClientOption{}, nil, err
	}
	return fromURL(u, driver.Config{})
}

func TestURL_SaysWhereTheServersAre(t *testing.T) {
	for raw, want := range map[string]struct {
		addrs          []string
		user, password string
		db             int
		single         bool
		primary        string
	}{
		"redis://localhost":          {addrs: []string{"localhost:6379"}, single: true},
		"redis://10.0.0.1:7000/":     {addrs: []string{"10.0.0.1:7000"}, single: true},
		"redis://localhost/2":        {addrs: []string{"localhost:6379"}, db: 2, single: true},
		"redis://localhost?db=2":     {addrs: []string{"localhost:6379"}, db: 2, single: true},
		"redis://localhost/2?db=2":   {addrs: []string{"localhost:6379"}, db: 2, single: true},
		"redis://[::1]":              {addrs: []string{"[::1]:6379"}, single: true},
		"redis://[2001:db8::1]:7000": {addrs: []string{"[2001:db8::1]:7000"}, single: true},
		"redis://:hunter2@h":         {addrs: []string{"h:6379"}, password: "hunter2", single: true},
		"redis://bob:hunter2@h":      {addrs: []string{"h:6379"}, user: "bob", password: "hunter2", single: true},
		"redis://b%40b:%2F%3F%23%25%3A%40,@h": {
			addrs: []string{"h:6379"}, user: "b@b", password: "/?#%:@,", single: true,
		},
		"redis://bob:p@ss:w+rd@h": {
			addrs: []string{"h:6379"}, user: "bob", password: "p@ss:w+rd", single: true,
		},
		"redis+cluster://h1,h2:7001,[::1]": {addrs: []string{"h1:6379", "h2:7001", "[::1]:6379"}},
		"redis+sentinel://bob:hunter2@h1,h2:5000/my.primary-1_a?db=3": {
			addrs: []string{"h1:26379", "h2:5000"}, user: "bob", password: "hunter2", db: 3, primary: "my.primary-1_a",
		},
	} {
		o, _, err := readURL(t, raw)
		if err != nil {
			t.Errorf("%s: %v", raw, err)
			continue
		}
		if !slices.Equal(o.InitAddress, want.addrs) || o.Username != want.user || o.Password != want.password ||
			o.SelectDB != want.db || o.ForceSingleClient != want.single || o.Sentinel.MasterSet != want.primary {
			t.Errorf("%s: got %v %q %q %d %v %q",
				raw, o.InitAddress, o.Username, o.Password, o.SelectDB, o.ForceSingleClient, o.Sentinel.MasterSet)
		}
		if o.TLSConfig != nil || o.Sentinel.TLSConfig != nil {
			t.Errorf("%s: speaks TLS", raw)
		}
	}
}

func TestURL_SetsOptions(t *testing.T) {
	o, opts, err := readURL(t,
		"redis+sentinel://h/p?prefix=app:&replicas=2&replica-timeout=300ms&check=refuse"+
			"&sentinel-user=eve&sentinel-password=p%40ss")
	if err != nil {
		t.Fatal(err)
	}
	if opts.Prefix != "app:" || opts.Replicas != 2 || opts.ReplicaTimeout != 300*time.Millisecond ||
		opts.Check != CheckRefuse {
		t.Errorf("got %+v", opts)
	}
	if o.Sentinel.Username != "eve" || o.Sentinel.Password != "p@ss" || o.Username != "" || o.Password != "" {
		t.Errorf("got %q %q for the Sentinels", o.Sentinel.Username, o.Sentinel.Password)
	}
}

func TestURL_MayHaveAnAtSignInItsQuery(t *testing.T) {
	if _, opts, err := readURL(t, "redis+sentinel://h/p?prefix=app@1:&sentinel-password=a@b"); err != nil ||
		opts.Prefix != "app@1:" {
		t.Errorf("got %+v, %v", opts, err)
	}
}

// pemFiles makes files with a certificate, its key, and a text that is neither.
func pemFiles(t *testing.T) (ca, cert, key, text string) {
	t.Helper()
	s := servers.RedisServer(t, &servers.RedisOptions{TLS: true})
	dir := filepath.Dir(s.CAFile())
	text = filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	return s.CAFile(), filepath.Join(dir, "node.crt"), filepath.Join(dir, "node.key"), text
}

func TestURL_SetsTLS(t *testing.T) {
	ca, cert, key, _ := pemFiles(t)
	files := "ca=" + url.QueryEscape(ca) + "&cert=" + url.QueryEscape(cert) + "&key=" + url.QueryEscape(key)
	for _, raw := range []string{
		"rediss://h?" + files, "redis://h?tls=true&" + files,
		"redis+cluster://h?tls=true&" + files, "redis+sentinel://h/p?tls=1&" + files,
	} {
		o, _, err := readURL(t, raw)
		if err != nil {
			t.Errorf("%s: %v", raw, err)
			continue
		}
		if c := o.TLSConfig; c == nil || c.RootCAs == nil || len(c.Certificates) != 1 ||
			c.MinVersion != tls.VersionTLS12 || c.InsecureSkipVerify {
			t.Errorf("%s: got %+v", raw, c)
		}
		if sentinel := strings.HasPrefix(raw, "redis+sentinel"); sentinel != (o.Sentinel.TLSConfig != nil) {
			t.Errorf("%s: TLS to the Sentinels is %v", raw, o.Sentinel.TLSConfig != nil)
		}
	}
	if o, _, err := readURL(t, "rediss://h"); err != nil || o.TLSConfig == nil || o.TLSConfig.RootCAs != nil {
		t.Errorf("with the system's authorities: %v", err)
	}
}

func TestURL_ThatIsWrong_SaysWhyWithoutThePassword(t *testing.T) {
	ca, cert, _, text := pemFiles(t)
	for raw, says := range map[string]string{
		"redis://":                 "names no server; write for instance redis://localhost",
		"redis://:hunter2@":        "names no server",
		"redis://:hunter2@:6379":   "a host is empty",
		"redis://:hunter2@[]":      "a host cannot be read",
		"redis://:hunter2@h,":      "empty or broken entry",
		"redis://:hunter2@h:":      "port of h is not a number",
		"redis://:hunter2@h:port":  "port of h is not a number",
		"redis://:hunter2@h:0":     "from 1 to 65535",
		"redis://:hunter2@h:65536": "from 1 to 65535",
		"redis://:hunter2@::1":     "IPv6 address in brackets",
		"redis://:hunter2@[::1":    "IPv6 address in brackets",
		"redis://:hunter2@h1,h2": "takes one server; for several write redis+sentinel://, " +
			"redis+cluster:// or redlock://",
		"redis://:hunter2@h/x":      "the path is the number of a database",
		"redis://:hunter2@h/-1":     "the path is the number of a database",
		"redis://:hunter2@h/1/2":    "the path is the number of a database",
		"redis://:hunter2@h/1?db=2": "name different databases",
		"redis://:hunter2@h?db=-1":  "at least 0",
		"redis://:hunter2@h?db=one": "whole number",
		"redis://:hunter2@h?database=1": `unknown query key "database": this engine takes ca, cert, check, db, key, ` +
			`prefix, replica-timeout, replicas, sentinel-password, sentinel-user, tls`,
		"redis://:hunter2@h?password=hunter2":           `unknown query key "password"`,
		"redis://:hunter2@h?replicas=101":               "0 to 100 replicas",
		"redis://:hunter2@h?replica-timeout=1us":        "at least 1 ms",
		"redis://:hunter2@h?check=strict":               "check is warn, refuse or none",
		"redis://:hunter2@h?prefix={a}":                 "braces",
		"redis://:hunter2@h?prefix=a%20b":               "spaces",
		"redis://:hunter2@h?prefix=a%0Bb":               "control characters",
		"redis://:hunter2@h?sentinel-user=a":            "are for redis+sentinel:// only",
		"redis://:hunter2@h?ca=x":                       "write rediss:// or tls=true",
		"rediss://:hunter2@h?tls=false":                 "contradict",
		"rediss://:hunter2@h?ca=/no/such/file":          "no such file",
		"rediss://:hunter2@h?ca=" + text:                "no certificate in PEM form",
		"rediss://:hunter2@h?cert=" + cert:              "cert and key go together",
		"rediss://:hunter2@h?key=" + cert:               "cert and key go together",
		"rediss://:hunter2@h?cert=" + ca + "&key=" + ca: "the client's certificate",
		"redis+sentinel://:hunter2@h": "names no primary; write " +
			"redis+sentinel://host1,host2,host3/NAME",
		"redis+sentinel://:hunter2@h/p/0":       "a database is set by db",
		"redis+cluster://:hunter2@h/0":          "no numbered databases",
		"redis+cluster://:hunter2@h?db=1":       "no numbered databases",
		"redis://bob:hunter2/hunter2@h":         "write a / inside a user or password as %2F",
		"redis+sentinel://bob:1/hunter2@h/p":    "write a / inside a user or password as %2F",
		"redis://bob:hunter2?hunter2@h":         "write a ? inside a user or password as %3F",
		"redis://bob:hunter2?hunter2=hunter2@h": "write a ? inside a user or password as %3F",
		"redis://bob:hunter2#hunter2@h":         "write a # inside a name or password as %23",
		"redis://bob:hunter2%@h":                "write a % as %25",
	} {
		_, _, err := readURL(t, raw)
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: got %v, want an error that says %q", raw, err, says)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the error shows the password: %v", raw, err)
		}
	}
}

// silentServer accepts connections and says nothing, or what it is given and then closes them.
func silentServer(t *testing.T, says string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	if says != "" {
		go func() { // ends with the listener
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				_, _ = c.Write([]byte(says))
				_ = c.Close()
			}
		}()
	}
	return l.Addr().String()
}

func TestOpen_OfWhatCannotBeUsed_FailsSoonAndClearly(t *testing.T) {
	plain := servers.RedisServer(t, &servers.RedisOptions{Password: "hunter2"})
	limited := servers.RedisServer(t, &servers.RedisOptions{Users: []string{"bob on >hunter2 ~* &other +@all"}})
	encrypted := servers.RedisServer(t, &servers.RedisOptions{TLS: true})
	private := servers.RedisServer(t,
		&servers.RedisOptions{TLS: true, Config: map[string]string{"tls-auth-clients": "yes"}})
	sentinel := servers.RedisSentinel(t, 0, nil).Sentinels()[0]
	full := servers.RedisServer(t,
		&servers.RedisOptions{Config: map[string]string{"maxmemory": "50mb", "maxmemory-policy": "allkeys-lru"}})
	silent, web := silentServer(t, ""), silentServer(t, "HTTP/1.1 400 Bad Request\r\n\r\n")
	const closed = "127.0.0.1:1" // nobody listens there: tcpmux
	for raw, says := range map[string]string{
		"redis://" + plain.Addr():                                "write redis://user:password@host",
		"redis://:hunter3@" + plain.Addr():                       "WRONGPASS",
		"redis://bob:hunter2@" + plain.Addr():                    "user or password is wrong",
		"redis://:hunter2@" + plain.Addr() + "/999":              "the server has fewer databases",
		"redis://bob:hunter2@" + limited.Addr():                  "rights that locking needs",
		"rediss://:hunter2@" + plain.Addr():                      "does the server speak TLS on this port?",
		"redis://" + encrypted.Addr():                            "write rediss:// or tls=true",
		"rediss://" + encrypted.Addr():                           "ca=/path/ca.crt",
		"rediss://" + private.Addr() + "?ca=" + private.CAFile(): "client's certificate",
		"redis://:hunter2@" + closed:                             "connection refused",
		"redis+cluster://:hunter2@" + closed:                     "connection refused",
		"redis+sentinel://:hunter2@" + closed + "/p":             "connection refused",
		"redis://:hunter2@" + silent:                             "deadline exceeded",
		"redis+cluster://:hunter2@" + silent:                     "deadline exceeded",
		"redis+sentinel://:hunter2@" + silent + "/p":             "deadline exceeded",
		"rediss://:hunter2@" + silent:                            "does the server speak TLS on this port?",
		"redis://:hunter2@" + web:                                "unknown message type",
		"rediss://:hunter2@" + web:                               "without tls=true",
		"redis+sentinel://" + sentinel +
			"/nobody": "the path is the name under which the Sentinels know the primary",
		"redis+sentinel://:hunter2@" + plain.Addr() +
			"/p": "set sentinel-user and sentinel-password",
		"redis+sentinel://" + plain.Addr() + "/p?sentinel-password=hunter3":    "WRONGPASS",
		"redis://" + full.Addr() + "?check=refuse":                             "set maxmemory-policy noeviction",
		"redis://127.0.0.1:70000":                                              "from 1 to 65535",
		"redis://" + plain.Addr() + "?sentinel-password=hunter2":               "redis+sentinel:// only",
		"redis://:hunter2@" + plain.Addr() + "?tls=true&ca=" + plain.Binary:    "no certificate in PEM form",
		"redis+cluster://bob:hunter2@" + limited.Addr() + "," + limited.Addr(): "",
	} {
		log := &bytes.Buffer{}
		limit := patience
		if strings.Contains(raw, silent) { // the context alone ends it
			limit = time.Second
		}
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		began := pace.Process().Now()
		c, err := interlock.Open(ctx, raw, &interlock.Options{Logger: slog.New(slog.NewTextHandler(log, nil))})
		took := pace.Process().Now() - began // in which this process did not stand still
		ended := ctx.Err()
		cancel()
		if err == nil {
			t.Errorf("%s: opened", raw)
			_ = c.Close()
			continue
		}
		if !strings.HasPrefix(err.Error(), "interlock: open: redis: ") || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: got %q, want an error that says %q", raw, err, says)
		}
		if text := err.Error() + log.String(); strings.Contains(text, "hunter") {
			t.Errorf("%s: the password is shown: %s", raw, text)
		}
		if took > limit+time.Second || (ended != nil) != (limit < patience) {
			t.Errorf("%s: %v after %v", raw, err, took)
		}
		if reached := !strings.Contains(err.Error(),
			"cannot use"); reached == errors.Is(err, interlock.ErrUnavailable) {
			t.Errorf("%s: ErrUnavailable is %v: %v", raw, !reached, err)
		}
	}
}

func TestOpen_OfEachTopology(t *testing.T) {
	t.Parallel()
	secret := &servers.RedisOptions{Password: "p@ss/w?rd#1%:"}
	const login = ":p%40ss%2Fw%3Frd%231%25%3A@"
	s := servers.RedisSentinel(t, 1, secret)
	encrypted := servers.RedisServer(t,
		&servers.RedisOptions{TLS: true, Config: map[string]string{"tls-auth-clients": "yes"}})
	dir := filepath.Dir(encrypted.CAFile())
	cluster := servers.RedisCluster(t, 3, 0, secret)
	for _, raw := range []string{
		"redis://" + login + servers.RedisServer(t, secret).Addr() + "/3",
		"rediss://" + encrypted.Addr() + "?ca=" + encrypted.CAFile() + "&cert=" + dir + "/node.crt&key=" + dir +
			"/node.key",
		"redis+sentinel://" + login + strings.Join(s.Sentinels(), ",") + "/" + s.Name() +
			"?replicas=1&replica-timeout=10s&db=2",
		"redis+cluster://" + login + cluster.Owner(0).Addr() + "," + cluster.Owner(conn.Slots-1).Addr(),
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		log := &bytes.Buffer{}
		c, err := interlock.Open(ctx, raw, &interlock.Options{Logger: slog.New(slog.NewTextHandler(log, nil))})
		if err != nil {
			t.Errorf("%s: %v", raw, err)
		} else {
			if err := c.Do(ctx, "a", func(context.Context) error { return nil }); err != nil {
				t.Errorf("%s: %v", raw, err)
			}
			if err := c.Close(); err != nil {
				t.Errorf("%s: %v", raw, err)
			}
		}
		if strings.Contains(log.String(), "rd#1") {
			t.Errorf("the log shows the password: %s", log)
		}
		cancel()
	}
}
