package zklock

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servers"
)

func TestURL_IsRead(t *testing.T) {
	config := driver.Config{Lease: 7 * time.Second, Client: "me"}
	for _, c := range []struct {
		url   string
		hosts []string
		check func(o *Options) bool
	}{
		{"zk://localhost", []string{"localhost:2181"}, func(o *Options) bool {
			return o.Root == "" && o.Timeout == 7*time.Second && o.Client == "me" && o.TLS == nil
		}},
		{"zk://a,b:99,[::1]", []string{"a:2181", "b:99", "[::1]:2181"}, func(o *Options) bool { return o.User == "" }},
		{"zk://a:1,b:2/app/locks", []string{"a:1", "b:2"}, func(o *Options) bool { return o.Root == "/app/locks" }},
		{"zk://me:s%2Fcret@a", []string{"a:2181"}, func(o *Options) bool {
			return o.User == "me" && o.Password == "s/cret"
		}},
		{"zk://me:x@a?acl=open", []string{"a:2181"}, func(o *Options) bool {
			return slices.Equal(o.ACL, zk.WorldACL(zk.PermAll))
		}},
		{"zk://a?tls=true", []string{"a:2281"}, func(o *Options) bool { return o.TLS != nil }},
	} {
		u, err := driver.ParseURL(c.url)
		if err != nil {
			t.Fatal(err)
		}
		hosts, o, err := fromURL(u, config)
		if err != nil || !slices.Equal(hosts, c.hosts) || !c.check(o) {
			t.Errorf("%s: hosts %v, options %+v, %v", c.url, hosts, o, err)
		}
	}
}

func TestURL_ThatIsWrong_IsRefusedWithoutShowingThePassword(t *testing.T) {
	for url, want := range map[string]string{
		"zk://":                              "names no server",
		"zk://a?ttl=3s":                      "takes acl, ca, cert, key, tls",
		"zk://me:hidden@a?timeout=3s":        "unknown query key",
		"zk://me:hid/den@a":                  "%2F",
		"zk://me:hid?den=1@a":                "%3F",
		"zk://a?acl=mine":                    "open or creator",
		"zk://a?acl=creator":                 "needs a user",
		"zk://:hidden@a":                     "no user",
		"zk://a?ca=/x":                       "tls=true",
		"zk://a?tls=true&cert=/x":            "go together",
		"zk://a?tls=true&ca=/missing":        "certificate authority",
		"zk://a?tls=maybe":                   "true or false",
		"zk://a:port":                        "port",
		"zk://::1":                           "brackets",
		"zk://:2181":                         "empty",
		"zk://a/zookeeper/x":                 "ZooKeeper's own",
		"zk://a/x//y":                        "empty parts",
		"zk://a/x/../y":                      `".."`,
		"zk://a/" + strings.Repeat("x", 300): "at most",
		"zk://a/%00":                         "allows no",
	} {
		_, err := new(driver.Mux).Open(context.Background(), url, driver.Config{})
		if err == nil {
			t.Errorf("%s is opened by nobody", url)
		}
		_, err = driver.DefaultMux.Open(context.Background(), url, driver.Config{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", url, err, want)
			continue
		}
		if strings.Contains(err.Error(), "hid") {
			t.Errorf("%s: the error shows the password: %v", url, err)
		}
	}
}

func TestURL_OfNoServer_SaysSoAtOnce(t *testing.T) {
	t.Parallel()
	for url, says := range map[string]string{
		"zk://me:hidden@127.0.0.1:1":             "refused",
		"zk://me:hidden@127.0.0.1:1,127.0.0.1:2": "is the address right",
	} {
		begin := time.Now()
		_, err := driver.DefaultMux.Open(t.Context(), url, driver.Config{})
		if !errors.Is(err, driver.ErrUnavailable) || !strings.Contains(err.Error(), says) ||
			strings.Contains(err.Error(), "hidden") {
			t.Errorf("%s: %v, want %q", url, err, says)
		}
		if took := time.Since(begin); took > openTimeout/2 {
			t.Errorf("%s: it took %v", url, took)
		}
	}
}

// A server that is silent may be about to come, so that is waited for, and the reason is told when the time is over.
func TestURL_OfAServerThatIsSilent_EndsWithTheContext(t *testing.T) {
	t.Parallel()
	p := servers.NewProxy(t, sharedServer(t).Addr())
	p.BlackHole(servers.BothWays)
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	_, err := driver.DefaultMux.Open(ctx, "zk://"+p.Addr(), driver.Config{})
	if !errors.Is(err, driver.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}

func TestURL_OfAUserWithoutRights_SaysWhatToLookAt(t *testing.T) {
	t.Parallel()
	n, root := sharedServer(t), freshRoot()
	open(t, []string{n.Addr()}, &Options{Root: root, User: "me", Password: "s3cret"})
	for user, says := range map[string]string{"": "write zk://user:password@host", "me:wr0ng@": "with this password"} {
		_, err := driver.DefaultMux.Open(t.Context(), "zk://"+user+n.Addr()+root, driver.Config{})
		if !errors.Is(err, zk.ErrNoAuth) || !strings.Contains(err.Error(), says) ||
			strings.Contains(err.Error(), "wr0ng") {
			t.Errorf("user %q: %v, want %q", user, err, says)
		}
	}
}

func TestNew_WithoutAHost_SaysSo(t *testing.T) {
	if _, err := New(t.Context(), []string{""}, nil); err == nil ||
		!strings.Contains(err.Error(), "zk: a host is empty") {
		t.Errorf("got %v", err)
	}
}
