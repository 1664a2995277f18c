package rueidisconn

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/interlock-go/interlock/internal/servers"
	"github.com/interlock-go/interlock/redislock/conn"
	"github.com/redis/rueidis"
)

// answered returns an error as rueidis makes it of a server's answer.
func answered(t *testing.T, message string) error {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() { // ends with the connection
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		for in := bufio.NewReader(conn); ; {
			line, err := in.ReadString('\n')
			if err != nil {
				return
			}
			if line[0] != '*' {
				continue // the rest of a command
			}
			if _, err := fmt.Fprintf(conn, "-%s\r\n", message); err != nil {
				return
			}
		}
	}()
	_, err = rueidis.NewClient(soloOption(l.Addr().String()))
	var answer *rueidis.RedisError
	if !errors.As(err, &answer) || answer.Error() != strings.TrimPrefix(message, "ERR ") {
		t.Fatalf("rueidis makes %v of %q", err, message)
	}
	return err
}

func TestJudge_KnowsWhatHasNotRun(t *testing.T) {
	const inside = " script: 0123, on @user_script:1."
	for message, want := range map[string]judgement{
		"NOSCRIPT No matching script. Please use EVAL.":                 {verdict: noScript},
		"LOADING Redis is loading the dataset in memory":                {verdict: later},
		"TRYAGAIN Multiple keys request during rehashing of slot":       {verdict: later},
		"CLUSTERDOWN The cluster is down":                               {verdict: later},
		"MASTERDOWN conn.Link with MASTER is down":                      {verdict: later},
		"BUSY Redis is busy running a script.":                          {verdict: later},
		"NOAUTH Authentication required.":                               {verdict: refused},
		"NOPERM this user has no permissions to run 'evalsha'":          {verdict: refused},
		"NOPERM this user has no permissions to run 'publish'" + inside: {verdict: unknown},
		"READONLY You can't write against a read only replica.":         {verdict: elsewhere},
		"READONLY You can't write against a read only replica" + inside: {verdict: elsewhere},
		"ERR Error running script (call to f_0): @user_script:1: @user_script: 1: -READONLY You can't": {
			verdict: elsewhere,
		},
		"OOM command not allowed when used memory > 'maxmemory'." + inside: {verdict: unknown},
		"ERR wrong number of arguments":                                    {verdict: unknown},
		"MOVED 3999 10.0.0.7:6381":                                         {moved, "10.0.0.7:6381"},
		"MOVED 3999 redis.example:6381":                                    {moved, "redis.example:6381"},
		"MOVED 3999 :6381":                                                 {moved, "10.0.0.1:6381"},
		"MOVED 3999 2001:db8::7:6381":                                      {moved, "[2001:db8::7]:6381"},
		"MOVED 3999 [2001:db8::7]:6381":                                    {moved, "[2001:db8::7]:6381"},
		"ASK 3999 10.0.0.7:6381":                                           {asked, "10.0.0.7:6381"},
		"MOVED 3999 ?:6381":                                                {verdict: refused},
		"MOVED":                                                            {verdict: refused},
		"MOVED 3999 nonsense":                                              {verdict: refused},
	} {
		if got := judge(answered(t, message), "10.0.0.1:6379"); got != want {
			t.Errorf("%s: %+v, want %+v", message, got, want)
		}
	}
	if got := judge(answered(t, "MOVED 3999 10.0.0.7:6381"), ""); got.verdict != refused {
		t.Errorf("MOVED where there is no Cluster: %+v", got)
	}
	for _, row := range []struct {
		err  error
		want verdict
	}{
		{&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, unreached},
		{&net.OpError{Op: "read", Err: syscall.ECONNRESET}, unknown},
		{fmt.Errorf("wrapped: %w", &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}), unreached},
		{&conn.RefusedError{Err: context.Canceled}, refused},
		{context.Canceled, unknown},
		{rueidis.ErrClosing, unknown},
		{conn.ErrUnsent, unsent},
		{conn.ErrReplica, later},
	} {
		if got := judge(row.err, ""); got.verdict != row.want {
			t.Errorf("%v: %+v, want %v", row.err, got, row.want)
		}
	}
}

// What a server really says when a command in a script is not permitted after another one has run.
func TestCall_OfAScriptThatIsStoppedInTheMiddle_LeavesTheOutcomeOpen(t *testing.T) {
	s := servers.RedisServer(t, &servers.RedisOptions{Users: []string{"bob on >secret ~* &push:test +@all -publish -get"}})
	option := soloOption(s.Addr())
	option.Username, option.Password = "bob", "secret"
	c := start(t, option, newTeller())
	for _, second := range []string{`redis.call('PUBLISH', 'c', 'm')`, `redis.call('GET', KEYS[1])`} {
		source := `redis.call('INCR', KEYS[1]) ` + second + ` return ''`
		if r := c.Call(t.Context(), &conn.Call{Script: conn.NewScript(source), Keys: []string{"n"}}); r.Err == nil || isRefused(r.Err) {
			t.Errorf("%s: %+v, want an open outcome", second, r)
		}
	}
}
