package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/internal/longrun"
	"github.com/interlock-go/interlock/internal/servers"
	"github.com/rogpeppe/go-internal/testscript"
)

// redisTopologies start a deployment and return its URL, which has a query already.
var redisTopologies = []struct {
	name  string
	start func(t *testing.T) string
}{
	{"standalone", func(t *testing.T) string {
		return "redis://" + servers.Redis(t) + "/3?tls=false"
	}},
	{"encrypted", func(t *testing.T) string {
		n := servers.RedisServer(t, &servers.RedisOptions{TLS: true, Password: redisPassword})
		return "rediss://:" + redisPassword + "@" + n.Addr() + "?ca=" + n.CAFile()
	}},
	{"sentinel", func(t *testing.T) string {
		return sentinelURL(servers.RedisSentinel(t, 1, nil), 0, 1, 2) + "?tls=false"
	}},
	{"replicas", func(t *testing.T) string {
		return sentinelURL(servers.RedisSentinel(t, 1, nil), 2, 0) + "?replicas=1"
	}},
	{"cluster", func(t *testing.T) string {
		c := servers.RedisCluster(t, 3, 1, nil)
		return "redis+cluster://" + strings.Join(c.Addrs()[1:3], ",") + "?tls=false"
	}},
	{"redlock", func(t *testing.T) string {
		var addrs []string
		for range 5 {
			addrs = append(addrs, servers.RedisServer(t, &servers.RedisOptions{Password: redisPassword}).Addr())
		}
		return "redlock://:" + redisPassword + "@" + strings.Join(addrs, ",") + "?node-timeout=5s"
	}},
}

// redisPassword must not be seen in any output.
const redisPassword = "sesame"

// sentinelURL names a deployment by some of its Sentinels.
func sentinelURL(s *servers.SentinelRedis, which ...int) string {
	var hosts []string
	for _, i := range which {
		hosts = append(hosts, s.Sentinels()[i])
	}
	return "redis+sentinel://" + strings.Join(hosts, ",") + "/" + s.Name()
}

// usualScripts are those that show whether a topology is reached at all: a whole job, what is seen of it, and its locks
// by hand.
var usualScripts = []string{"run", "doctor", "sem"}

// TestScripts_OnRedis runs testdata/redis on each topology: the same commands, the same words. Each script has a prefix
// of its own, so that it sees no locks of others. But for the first topology, only a long run runs them all; it
// has the command of the first under the race detector.
func TestScripts_OnRedis(t *testing.T) {
	for i, topology := range redisTopologies {
		t.Run(topology.name, func(t *testing.T) {
			t.Parallel()
			url := topology.start(t)
			p := scripts("testdata/redis", i == 0 && longrun.On(), func(env *testscript.Env) error {
				base := fmt.Sprintf("%s&prefix=%s:", url, scriptName(env))
				env.Setenv("INTERLOCK_URL", base+"&check=none") // servers for tests write nothing to disk
				env.Setenv("CHECKED", base+"&check=warn")
				return nil
			})
			p.Condition = func(word string) (bool, error) {
				return word == topology.name, nil
			}
			if i > 0 && !longrun.On() {
				p.Dir, p.Files = "", scriptsOf(p.Dir, usualScripts)
			}
			testscript.Run(t, p)
		})
	}
}

// scriptsOf are the scripts of a folder that are called so.
func scriptsOf(dir string, names []string) (files []string) {
	for _, name := range names {
		files = append(files, filepath.Join(dir, name+".txtar"))
	}
	return files
}

// scriptName is the name of the script that env is for.
func scriptName(env *testscript.Env) string {
	name := env.T().(testing.TB).Name()
	return name[strings.LastIndexByte(name, '/')+1:]
}

// TestScripts_OnBadRedis runs testdata/refused: what a user reads when a URL is wrong, or a server does not let locks
// be taken. The scripts know addresses of servers by names in the environment. Beside the commands of TestScripts they
// use:
//
//	hang   stops the server $HUNG
//	heal   lets it go on
func TestScripts_OnBadRedis(t *testing.T) {
	t.Parallel()
	locked := servers.RedisServer(t, &servers.RedisOptions{
		Password: redisPassword,
		Users:    []string{"part on >sesame ~interlock:* &interlock:* +@all -zadd -@dangerous +info +config|get"},
	})
	pair := servers.RedisReplicated(t, 1, nil)
	cluster := servers.RedisCluster(t, 3, 0, nil)
	hung := servers.RedisServer(t, nil)
	gone := servers.RedisServer(t, nil)
	gone.Kill()
	p := scripts("testdata/refused", false, func(env *testscript.Env) error {
		for name, n := range map[string]*servers.RedisNode{
			"LOCKED": locked, "PRIMARY": pair.Primary, "REPLICA": pair.Replicas[0], "NODE": cluster.Nodes()[0],
			"HUNG": hung, "GONE": gone,
		} {
			env.Setenv(name, n.Addr())
		}
		return nil
	})
	p.Cmds["hang"] = func(*testscript.TestScript, bool, []string) { hung.Stop() }
	p.Cmds["heal"] = func(*testscript.TestScript, bool, []string) { hung.Cont() }
	testscript.Run(t, p)
}
