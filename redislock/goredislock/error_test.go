package goredislock

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"

	"github.com/interlock-go/interlock/redislock/conn"
	"github.com/redis/go-redis/v9"
)

// answer is a server's error, as go-redis hands it on.
type answer string

func (a answer) Error() string { return string(a) }
func (answer) RedisError()     {}

// What servers answer is judged in package conn. This is about how go-redis hands that on, and about errors of its own.
func TestJudge_KnowsTheErrorsOfGoRedis(t *testing.T) {
	dial := &net.OpError{Op: "dial", Err: errors.New("refused")}
	for _, test := range []struct {
		err  error
		want conn.Verdict
	}{
		{answer("NOSCRIPT No matching script. Please use EVAL."), conn.NoScript},
		{answer("ERR max number of clients reached"), conn.Later},
		{answer("ERR something else"), conn.Unknown},
		{fmt.Errorf("by a hook: %w", answer("LOADING Redis is loading the dataset in memory")), conn.Later},
		{redis.Nil, conn.Unknown},
		{redis.ErrPoolTimeout, conn.Refused},
		{redis.ErrPoolExhausted, conn.Refused},
		{redis.ErrClosed, conn.Refused},
		{fmt.Errorf("by a hook: %w", redis.ErrPoolTimeout), conn.Refused},
		{&conn.RefusedError{Err: io.EOF}, conn.Refused},
		{errStranger, conn.Later},
		{dial, conn.Unreached},
		{fmt.Errorf("by a hook: %w", dial), conn.Unreached},
		{&net.OpError{Op: "read", Err: errors.New("reset")}, conn.Unknown},
		{io.EOF, conn.Unknown},
		{context.DeadlineExceeded, conn.Unknown},
		{context.Canceled, conn.Unknown},
	} {
		if got := library.Judge(test.err, ""); got.Verdict != test.want {
			t.Errorf("%v: %+v, want %d", test.err, got, test.want)
		}
	}
}

// Where a redirect leads depends on whether the client is one for a Cluster, and a little on who was asked.
func TestJudge_OfARedirect_KnowsWhoWasAsked(t *testing.T) {
	alone := &transport{}
	cluster := &transport{cluster: redis.NewClusterClient(&redis.ClusterOptions{})}
	defer cluster.cluster.Close()
	node := redis.NewClient(&redis.Options{Addr: "10.0.0.1:6379"})
	defer node.Close()
	if j := alone.judge(node, answer("MOVED 1 10.0.0.7:6381")); j.Verdict != conn.Refused {
		t.Errorf("for a client of one server: %+v", j)
	}
	for _, row := range []struct {
		node     *redis.Client
		told, to string
	}{
		{node, "ASK 1 10.0.0.7:6381", "10.0.0.7:6381"},
		{node, "ASK 1 :6381", "10.0.0.1:6381"},
		{nil, "ASK 1 10.0.0.7:6381", "10.0.0.7:6381"},
	} {
		if j := cluster.judge(row.node, answer(row.told)); j.Verdict != conn.Asked || j.Addr != row.to {
			t.Errorf("%q: %+v", row.told, j)
		}
	}
}
