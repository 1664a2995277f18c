// Errors of go-redis, as package conn wants them.

package goredislock

import (
	"errors"

	"github.com/interlock-go/interlock/redislock/conn"
	"github.com/redis/go-redis/v9"
)

// library knows the errors of go-redis. A pool without a free connection, or a closed client, has sent nothing.
var library = conn.Library{
	Answer: func(err error) (string, bool) {
		answer, is := asAnswer(err)
		if !is {
			return "", false
		}
		return answer.Error(), true
	},
	Failure: func(err error) conn.Verdict {
		if errors.Is(err, redis.ErrPoolTimeout) || errors.Is(err, redis.ErrPoolExhausted) ||
			errors.Is(err, redis.ErrClosed) {
			return conn.Refused // there was no connection to send it over
		}
		return conn.Unknown
	},
}

// someNode stands for the address of a node of a Cluster when only that much is known: a redirect without a host cannot
// be resolved then, but is one.
const someNode = ":0"

// judge says what an error of a call that was sent once to node means. node is nil if the cluster client chose it.
func (c *transport) judge(node *redis.Client, err error) conn.Judgement {
	switch {
	case c.cluster == nil:
		return library.Judge(err, "")
	case node == nil:
		return library.Judge(err, someNode)
	}
	return library.Judge(err, node.Options().Addr)
}

// verdict is what an error means that is not a redirect of a Cluster.
func verdict(err error) conn.Verdict { return library.Judge(err, "").Verdict }

// asAnswer returns the error that a server has answered with, if err is one.
func asAnswer(err error) (redis.Error, bool) {
	var answer redis.Error
	return answer, errors.As(err, &answer)
}
