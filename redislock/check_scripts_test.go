package redislock

import (
	"fmt"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servers"
	"github.com/redis/rueidis"
)

// Lua may be a module that is not loaded, or EVAL may have been renamed.
func TestDiagnose_OfAServerWithoutScripts_SaysSo(t *testing.T) {
	s := servers.RedisServer(t, &servers.RedisOptions{Config: map[string]string{"rename-command": `EVAL ""`}})
	d := open(t, soloOption(s.Addr()), nil)
	defer d.Close()
	for _, f := range d.Diagnose(t.Context()) {
		if f.Check == "rights" {
			if f.Level != driver.LevelFail || !strings.Contains(f.Detail, "EVAL") {
				t.Errorf("got %+v", f)
			}
			return
		}
	}
	t.Error("nothing is said of scripts")
}

// A client without the right to ask for the nodes of a Cluster takes one for a server that stands alone. Whoever opens
// it is told of the right, and not to use another client.
func TestOpen_OfAClusterWithoutTheRightToItsNodes_NamesTheRight(t *testing.T) {
	c := servers.RedisCluster(t, 2, 0, &servers.RedisOptions{Users: []string{"nobody off"}})
	node := c.Owner(0)
	rights := userRights(t, "locking", "in a Cluster")
	asUser(t, rueidis.ClientOption{}, nil, []*servers.RedisNode{node},
		append(rights, "-cluster|slots", "-cluster|shards"))
	_, err := driver.DefaultMux.Open(t.Context(), "redis+cluster://bob:hunter2@"+node.Addr(), driver.Config{})
	if text := fmt.Sprint(err); !strings.Contains(text, "NOPERM") ||
		!strings.Contains(text, "rights that locking needs") || strings.Contains(text, "stands alone") {
		t.Errorf("got %v", err)
	}
}

// CLIENT SETINFO needs a right of its own since Redis 7.2. Without it each connection would have an entry in the
// server's ACL LOG.
func TestOptions_DoNotSayWhichLibraryItIs(t *testing.T) {
	u, err := driver.ParseURL("redis://localhost")
	if err != nil {
		t.Fatal(err)
	}
	byURL, _, err := fromURL(u, driver.Config{})
	if err != nil {
		t.Fatal(err)
	}
	mine := []string{"mine", "1"}
	connects := connectOption(&rueidis.ClientOption{})
	for what, o := range map[string]rueidis.ClientOption{"url": byURL, "Connect": connects} {
		if o.ClientSetInfo == nil || len(o.ClientSetInfo) != 0 {
			t.Errorf("%s: %q", what, o.ClientSetInfo)
		}
	}
	if got := connectOption(&rueidis.ClientOption{ClientSetInfo: mine}).ClientSetInfo; len(got) != 2 {
		t.Errorf("the caller's own: %q", got)
	}
}
