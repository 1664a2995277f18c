package servers

import (
	"context"
	"crypto/tls"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"
)

// bounded is a context for a few commands.
func bounded(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// want fails t unless the command is answered as said.
func want(t *testing.T, n *RedisNode, reply any, command ...string) {
	t.Helper()
	if got, err := n.Do(bounded(t), command...); err != nil || got != reply {
		t.Errorf("%s on %s: %v, %v; want %v", strings.Join(command, " "), n.Addr(), got, err, reply)
	}
}

// dial connects until t ends.
func dial(t *testing.T, n *RedisNode) *RedisConn {
	t.Helper()
	c, err := n.Dial(bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestRedis_AnswersItsOwnProtocol(t *testing.T) {
	t.Parallel()
	addr := Redis(t) // which takes a time of its own
	if err := pingRedis(bounded(t), addr); err != nil {
		t.Error(err)
	}
}

func TestRedisConn_ReadsEveryKindOfReply(t *testing.T) {
	t.Parallel()
	n := RedisServer(t, nil)
	c := dial(t, n)
	got, err := c.Do(bounded(t), "EVAL",
		"return {1, 'a\\r\\n', {false, redis.status_reply('S'), redis.error_reply('E x')}, {}}", "0")
	want := []any{int64(1), "a\r\n", []any{nil, "S", RedisError("E x")}, []any{}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %#v, %v; want %#v", got, err, want)
	}
	if _, err := c.Do(bounded(t), "SUBSCRIBE", "news"); err != nil {
		t.Fatal(err)
	}
	if _, err := n.Do(bounded(t), "PUBLISH", "news", "none"); err != nil {
		t.Fatal(err)
	}
	if got, err := c.Receive(bounded(t)); err != nil || !reflect.DeepEqual(got, []any{"message", "news", "none"}) {
		t.Errorf("the message is %v, %v", got, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Receive(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of its context: %v", err)
	}
}

func TestRedisServer_ComesBackOnTheSameAddressWithItsData(t *testing.T) {
	t.Parallel()
	n := RedisServer(t,
		&RedisOptions{Config: map[string]string{"appendonly": "yes", "appendfsync": "always", "maxmemory": "100mb"}})
	want(t, n, "OK", "SET", "k", "v")
	addr := n.Addr()
	n.Kill()
	if _, err := n.Do(bounded(t), "PING"); err == nil || n.Alive() {
		t.Error("a killed server answers")
	}
	n.Restart()
	if n.Addr() != addr {
		t.Errorf("it was on %s and comes back on %s", addr, n.Addr())
	}
	want(t, n, "v", "GET", "k")
	if info, err := n.Info(bounded(t), "memory"); err != nil || info["maxmemory"] != "104857600" {
		t.Errorf("maxmemory is %q, %v", info["maxmemory"], err)
	}
}

func TestRedisServer_HangsWhileItIsStopped(t *testing.T) {
	t.Parallel()
	n := RedisServer(t, nil)
	c := dial(t, n)
	n.Stop()
	if err := c.Send(bounded(t), "PING"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := c.Receive(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a stopped server answers: %v", err)
	}
	if !n.Alive() {
		t.Error("a stopped server is not alive")
	}
	n.Cont()
	if answer, err := c.Receive(bounded(t)); answer != "PONG" {
		t.Errorf("after Cont: %v, %v", answer, err)
	}
	n.Stop()
	n.Kill() // of a stopped one, and the end of this test shows that it returned
}

func TestRedisServer_WithTLS_ServesItsOwnAuthorityOnly(t *testing.T) {
	t.Parallel()
	n := RedisServer(t, &RedisOptions{TLS: true, Config: map[string]string{"tls-auth-clients": "yes"}})
	want(t, n, "PONG", "PING")
	anonymous := n.TLS()
	anonymous.Certificates = nil
	for name, config := range map[string]*tls.Config{
		"plain text": nil, "another authority": {MinVersion: tls.VersionTLS12},
		"no certificate of the client": anonymous,
	} {
		if c, err := DialRedis(bounded(t), n.Addr(), config); err == nil {
			if answer, err := c.Do(bounded(t), "PING"); err == nil {
				t.Errorf("%s: answered %v", name, answer)
			}
			_ = c.Close()
		}
	}
}

func TestRedisServer_WithUsers_GivesEachItsRights(t *testing.T) {
	t.Parallel()
	n := RedisServer(t, &RedisOptions{Password: `a "b`, Users: []string{"bob on >secret ~app:* &* +set"}})
	c, err := DialRedis(bounded(t), n.Addr(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, row := range []struct{ refusal, command string }{
		{"NOAUTH", "PING"},
		{"WRONGPASS", "AUTH bob wrong"},
		{"", "AUTH bob secret"},
		{"", "SET app:k v"},
		{"NOPERM", "SET k v"},
		{"NOPERM", "GET app:k"},
	} {
		_, err := c.Do(bounded(t), strings.Fields(row.command)...)
		var refused RedisError
		if errors.As(err, &refused); err == nil && row.refusal != "" ||
			!strings.HasPrefix(string(refused), row.refusal) {
			t.Errorf("%s: %v, want %q", row.command, err, row.refusal)
		}
	}
	if _, err := c.Do(bounded(t), "AUTH", `a "b`); err != nil {
		t.Errorf("the password: %v", err)
	}
}
