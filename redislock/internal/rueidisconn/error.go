// Errors of rueidis and of package resp, as package conn wants them. call.go and listen.go judge by this.

package rueidisconn

import (
	"errors"

	"github.com/interlock-go/interlock/redislock/conn"
	"github.com/interlock-go/interlock/redislock/internal/resp"
	"github.com/redis/rueidis"
)

var errHangs = errors.New("the server does not answer")

// library knows the errors of rueidis and of package resp. rueidis does not tell whether it had begun to send, except
// that it had not if it could not connect. So its other failures mean Unknown.
var library = conn.Library{Answer: answer}

// judge says what an error of a call means. addr is that of the node that was asked, or empty outside of a Cluster.
//
// A call may find a link just before its keeper closes it. rueidis then refuses before it sends anything, and repeats
// no command of ours by itself.
func judge(err error, addr string) conn.Judgement {
	if errors.Is(err, rueidis.ErrDedicatedClientRecycled) {
		err = conn.ErrUnsent
	}
	return library.Judge(err, addr)
}

// answer returns the message of an error that a server has answered with.
func answer(err error) (string, bool) {
	var theirs *rueidis.RedisError
	var ours resp.ServerError
	switch {
	case errors.As(err, &theirs):
		return theirs.Error(), true
	case errors.As(err, &ours):
		return ours.Error(), true
	}
	return "", false
}

// isAnswer reports whether a carrier's error, or nil, is an answer of the server: then the connection is sound.
func isAnswer(err error) bool {
	if err == nil {
		return true
	}
	_, isAnswer := answer(err)
	return isAnswer || errors.Is(err, resp.ErrNoText)
}
