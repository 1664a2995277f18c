package redislock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servers"
	"github.com/interlock-go/interlock/redislock/internal/resp"
	"github.com/redis/rueidis"
)

func TestFinal_IsWhatAServerWouldSayAgain(t *testing.T) {
	const inside = " script: 0123, on @user_script:1."
	for message, want := range map[string]bool{
		"NOPERM this user has no permissions to run the 'evalsha' command":                true,
		"NOAUTH Authentication required.":                                                 true,
		"WRONGPASS invalid username-password pair or user is disabled.":                   true,
		"DENIED Redis is running in protected mode":                                       true,
		"WRONGTYPE Operation against a key holding the wrong kind of value" + inside:      true,
		"ERR unknown command 'EVALSHA', with args beginning with: ":                       true,
		"ERR Unknown Redis command called from script" + inside:                           true,
		"ERR The user executing the script can't run this command or subcommand" + inside: true,
		"ERR ACL failure in script: User bob has no permissions to run 'set'" + inside:    true,
		"ERR Error running script (call to f_0): @user_script:1: -WRONGTYPE Operation":    true,

		"LOADING Redis is loading the dataset in memory":                           false,
		"BUSY Redis is busy running a script.":                                     false,
		"MASTERDOWN Link with MASTER is down":                                      false,
		"CLUSTERDOWN The cluster is down":                                          false,
		"TRYAGAIN Multiple keys request during rehashing of slot":                  false,
		"READONLY You can't write against a read only replica.":                    false,
		"NOREPLICAS Not enough good replicas to write.":                            false,
		"OOM command not allowed when used memory > 'maxmemory'." + inside:         false,
		"MISCONF Redis is configured to save RDB snapshots, but it is not able to": false,
		"ERR max number of clients reached":                                        false,
		"ERR something that nobody knows":                                          false,
	} {
		err := errors.New(strings.TrimPrefix(message, "ERR ")) // as rueidis says it
		for _, err := range []error{
			err, resp.ServerError(message), &RefusedError{Err: err},
			fmt.Errorf("127.0.0.1:6379: %w", &RefusedError{Err: err}),
		} {
			if isFinal(err) != want {
				t.Errorf("isFinal(%v) = %v", err, !want)
			}
		}
	}
	no := errors.New("NOPERM this user has no permissions")
	for _, err := range []error{context.Canceled, errors.Join(no, context.Canceled), errors.New("connection reset")} {
		if isFinal(err) {
			t.Errorf("isFinal(%v)", err)
		}
	}
}

// What a wait is told by the server, once it waits, is taken away by an operator.
func TestWait_ThatTheServerRefusesForGood_EndsWithWhatItSays(t *testing.T) {
	s := servers.RedisServer(t, nil)
	for name, spoil := range map[string]struct {
		command []string
		says    string
	}{
		"the right to run scripts": {[]string{"ACL", "SETUSER", "bob", "-eval", "-evalsha"}, "NOPERM"},
		"the right to its keys":    {[]string{"ACL", "SETUSER", "bob", "resetkeys"}, "NOPERM"},
		"the type of the lock": {
			[]string{
				"EVAL", "redis.call('DEL', KEYS[1]); redis.call('LPUSH', KEYS[1], 1)", "1", "interlock:mutex:lock",
			},
			"a value that interlock did not write",
		},
	} {
		t.Run(name, func(t *testing.T) {
			option := rueidis.ClientOption{InitAddress: []string{s.Addr()}}
			begin := asUser(t, option, nil, []*servers.RedisNode{s}, []string{"~*", "&*", "+@all"})
			d, err := begin()
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = d.Close() }()
			holder := open(t, soloOption(s.Addr()), nil)
			defer func() { _ = holder.Close() }()
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			if _, err := holder.Acquire(ctx, lockRequest("holder", "lock")); err != nil {
				t.Fatal(err)
			}
			ended, err := waiting(ctx, d, lockRequest("waiter", "lock"))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.Do(ctx, spoil.command...); err != nil {
				t.Fatal(err)
			}
			err = <-ended
			if err == nil || !strings.Contains(err.Error(), spoil.says) || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the wait ended with %v", err)
			}
			if driver.IsDefinite(err) {
				t.Errorf("%v says that nothing is queued, which nobody knows", err)
			}
		})
	}
}
