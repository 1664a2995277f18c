package goredislock

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"

	"github.com/interlock-go/interlock/redislock"
	"github.com/redis/go-redis/v9"
)

// answer is a server's error, as go-redis hands it on.
type answer string

func (a answer) Error() string { return string(a) }
func (answer) RedisError()     {}

func TestJudge(t *testing.T) {
	dial := &net.OpError{Op: "dial", Err: errors.New("refused")}
	for _, test := range []struct {
		err  error
		want verdict
	}{
		{answer("NOSCRIPT No matching script. Please use EVAL."), noScript},
		{answer("MOVED 3999 127.0.0.1:6381"), moved},
		{answer("ASK 3999 127.0.0.1:6381"), asked},
		{answer("TRYAGAIN Multiple keys request during rehashing of slot"), later},
		{answer("LOADING Redis is loading the dataset in memory"), later},
		{answer("CLUSTERDOWN The cluster is down"), later},
		{answer("ERR max number of clients reached"), later},
		{answer("READONLY You can't write against a read only replica. script: ab, on @user_script:1."), elsewhere},
		{answer("ERR Error running script (call to f_ab): @user_script:1: -READONLY You can't write"), elsewhere},
		{answer("NOAUTH Authentication required."), refused},
		{answer("WRONGPASS invalid username-password pair"), refused},
		{answer("NOPERM this user has no permissions to run the 'evalsha' command"), refused},
		{answer("NOPERM this user has no permissions to run the 'set' command script: ab, on @user_script:1."), unknown},
		{answer("OOM command not allowed when used memory > 'maxmemory'. script: ab, on @user_script:1."), unknown},
		{answer("ERR something else"), unknown},
		{redis.Nil, unknown},
		{redis.ErrPoolTimeout, refused},
		{redis.ErrPoolExhausted, refused},
		{redis.ErrClosed, refused},
		{fmt.Errorf("by a hook: %w", redis.ErrPoolTimeout), refused},
		{&redislock.RefusedError{Err: io.EOF}, refused},
		{dial, unreached},
		{fmt.Errorf("by a hook: %w", dial), unreached},
		{&net.OpError{Op: "read", Err: errors.New("reset")}, unknown},
		{io.EOF, unknown},
		{context.DeadlineExceeded, unknown},
		{context.Canceled, unknown},
	} {
		if got := judge(test.err); got != test.want {
			t.Errorf("%v: %d, want %d", test.err, got, test.want)
		}
	}
}
