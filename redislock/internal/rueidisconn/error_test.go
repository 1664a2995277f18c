package rueidisconn

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/internal/servers"
	"github.com/interlock-go/interlock/redislock/conn"
	"github.com/interlock-go/interlock/redislock/internal/resp"
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

// rueidis leaves ERR out, and package resp does not.
func TestJudge_KnowsTheAnswersOfBothLibraries(t *testing.T) {
	for message, want := range map[string]conn.Judgement{
		"NOSCRIPT No matching script. Please use EVAL.": {Verdict: conn.NoScript, Answered: true},
		"ERR max number of clients reached":             {Verdict: conn.Later, Answered: true},
		"MOVED 3999 :6381":                              {Verdict: conn.Moved, Addr: "10.0.0.1:6381", Answered: true},
		"ERR wrong number of arguments":                 {Verdict: conn.Unknown, Answered: true},
	} {
		for _, err := range []error{answered(t, message), resp.ServerError(message)} {
			if got := judge(err, "10.0.0.1:6379"); got != want {
				t.Errorf("%v: %+v, want %+v", err, got, want)
			}
		}
	}
	for err, want := range map[error]conn.Judgement{
		rueidis.ErrClosing: {}, resp.ErrBroken: {}, resp.ErrAlone: {Verdict: conn.ByItself, Answered: true},
	} {
		if got := judge(err, ""); got != want {
			t.Errorf("%v: %+v, want %+v", err, got, want)
		}
	}
}

// What a server really says when a command in a script is not permitted after another one has run.
func TestCall_OfAScriptThatIsStoppedInTheMiddle_LeavesTheOutcomeOpen(t *testing.T) {
	s := servers.RedisServer(t,
		&servers.RedisOptions{Users: []string{"bob on >secret ~* &push:test +@all -publish -get"}})
	option := soloOption(s.Addr())
	option.Username, option.Password = "bob", "secret"
	c := start(t, option, newTeller())
	for _, second := range []string{`redis.call('PUBLISH', 'c', 'm')`, `redis.call('GET', KEYS[1])`} {
		source := `redis.call('INCR', KEYS[1]) ` + second + ` return ''`
		if r := c.Call(t.Context(), &conn.Call{Script: conn.NewScript(source), Keys: []string{"n"}}); r.Err == nil ||
			isRefused(r.Err) {
			t.Errorf("%s: %+v, want an open outcome", second, r)
		}
	}
}

// A call may find a link just before that is closed. Nothing was sent then, so the call goes on over another.
func TestJudge_OfALinkThatIsClosedAlready_SaysThatNothingWasSent(t *testing.T) {
	client, err := rueidis.NewClient(soloOption(servers.RedisServer(t, nil).Addr()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	d, release := client.Dedicate()
	release()
	call := echoCall("x")
	_, err = dedicated{d}.Call(t.Context(), &call, resp.ByName)
	if j := judge(err, ""); j.Verdict != conn.Unsent {
		t.Errorf("%v: verdict %v", err, j.Verdict)
	}
	for _, a := range (dedicated{d}).Pipeline(t.Context(), []resp.Command{{Call: &call}}) {
		if j := judge(a.Err, ""); j.Verdict != conn.Unsent {
			t.Errorf("in a pipeline: %v: verdict %v", a.Err, j.Verdict)
		}
	}
}
