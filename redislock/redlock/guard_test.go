package redlock

import (
	"testing"

	"github.com/interlock-go/interlock/drivertest/servers"
	"github.com/interlock-go/interlock/redislock"
	"github.com/redis/rueidis"
)

// A Conn whose waiting goroutines read for it reads late if they do not.
func TestGuard_LetsWaitingGoroutinesReadForTheConnection(t *testing.T) {
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{servers.Redis(t)}, DisableCache: true, ForceSingleClient: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	conn := redislock.RueidisConn(client)
	if _, awaits := conn.(redislock.Awaiter); !awaits {
		t.Fatal("the Conn of rueidis does not use waiting goroutines any more; then guard need not either")
	}
	if _, awaits := newGuard(conn, &Options{}).conn().(redislock.Awaiter); !awaits {
		t.Error("behind the guard it does not")
	}
}
