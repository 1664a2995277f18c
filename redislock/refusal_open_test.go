package redislock

import (
	"errors"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servers"
	"github.com/redis/rueidis"
)

// What a URL refuses when it is opened, a client is refused for too. Package goredislock has the
// same test for its clients.
func TestNew_OverAServerThatKeepsNoLocks_IsRefusedAsByURL(t *testing.T) {
	t.Parallel()
	r := servers.RedisReplicated(t, 1, nil)
	c := servers.RedisCluster(t, 2, 0, nil)
	for says, addr := range map[string]string{
		"the server is a replica or a sentinel": r.Replicas[0].Addr(),
		"the server is a node of a Cluster":     c.Owner(0).Addr(),
	} {
		client, err := rueidis.NewClient(soloOption(addr))
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		for way, open := range map[string]func() error{
			"rueidis": func() error { _, err := New(client, nil); return err },
			"URL": func() error {
				_, err := driver.DefaultMux.Open(t.Context(), "redis://"+addr, driver.Config{})
				return err
			},
		} {
			err := open()
			refused := driver.Refusal(err)
			if refused == nil || refused.Hint == "" || !strings.Contains(err.Error(), says) ||
				!strings.Contains(err.Error(), "cannot use "+addr) ||
				!strings.Contains(err.Error(), refused.Hint) {
				t.Errorf("%s to %s: %v, want a refusal with the address that says %q and what to do",
					way, addr, err, says)
			}
		}
	}
}

func TestOpen_ThatIsRefused_IsNotCalledUnreachable_AndAClosedPortIs(t *testing.T) {
	s := servers.RedisServer(t, &servers.RedisOptions{Password: "hunter2"})
	for raw, refused := range map[string]bool{
		"redis://" + s.Addr(): true, "redis://:hunter3@" + s.Addr(): true,
		"redis://:hunter2@" + s.Addr() + "/999": true,
		"redis://:hunter2@127.0.0.1:1":          false,
	} {
		_, err := driver.DefaultMux.Open(t.Context(), raw, driver.Config{})
		if !errors.Is(err, driver.ErrUnavailable) || errors.Is(err, driver.ErrRefused) != refused ||
			strings.Contains(err.Error(), "hunter") {
			t.Errorf("%v, want refused: %v", err, refused)
		}
		if said := driver.Refusal(err); (said != nil) != refused {
			t.Errorf("%v: %v", err, said)
		}
	}
}
