package goredislock

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"strings"
	"time"

	"github.com/interlock-go/interlock/enginekit"
	"github.com/interlock-go/interlock/redislock"
	"github.com/redis/go-redis/v9"
)

// verdict says what an error means for a call.
type verdict int

const (
	unknown   verdict = iota // the call may have run
	refused                  // it has not run, and asking again does not help
	later                    // it has not run, and may in a moment
	noScript                 // it has not run: the server wants the source
	moved                    // it has not run: another node has the slot
	asked                    // it has not run: another node has the key, for this time only
	elsewhere                // it has not run: this server is not the primary any more
	unreached                // it has not been sent: the server could not be reached
)

// codes says what a server means that answers with an error of its own, by the first word.
var codes = map[string]verdict{
	"NOSCRIPT": noScript, "MOVED": moved, "ASK": asked, "READONLY": elsewhere,
	"LOADING": later, "TRYAGAIN": later, "CLUSTERDOWN": later, "MASTERDOWN": later, "BUSY": later,

	"NOAUTH": refused, "WRONGPASS": refused, "NOPERM": refused, "DENIED": refused,
}

// judge says what an error of a call that was sent once means.
func judge(err error) verdict {
	if answer, ok := asAnswer(err); ok {
		return judgeAnswer(answer.Error())
	}
	var refusal *redislock.RefusedError
	var broken *net.OpError
	switch {
	case errors.As(err, &refusal):
		return refused
	case errors.Is(err, errStranger):
		return later
	case errors.Is(err, redis.ErrPoolTimeout), errors.Is(err, redis.ErrPoolExhausted), errors.Is(err, redis.ErrClosed):
		return refused // there was no connection to send it over
	case errors.As(err, &broken) && broken.Op == "dial":
		return unreached
	}
	return unknown
}

// judgeAnswer judges what a server says.
func judgeAnswer(message string) verdict {
	// Redis 6 packs the error of a command in a script into one of its own. It is the first write that fails, so nothing
	// has happened.
	if strings.Contains(message, "-READONLY ") {
		return elsewhere
	}
	if strings.HasPrefix(message, "ERR max number of clients reached") {
		return later
	}
	code, rest, _ := strings.Cut(message, " ")
	// Since Redis 7 an error of a command in a script keeps its code. The commands before it have run, but for READONLY.
	inside := strings.Contains(rest, " script: ") && strings.Contains(rest, "@user_script")
	if v := codes[code]; v == elsewhere || !inside {
		return v
	}
	return unknown
}

// asAnswer returns the error that a server has answered with, if err is one.
func asAnswer(err error) (redis.Error, bool) {
	var answer redis.Error
	return answer, errors.As(err, &answer)
}

// refusedIf returns err as a refusal if it is the end, and else nil.
func refusedIf(end bool, err error) error {
	var refusal *redislock.RefusedError
	switch {
	case !end:
		return nil
	case errors.As(err, &refusal):
		return err
	}
	return &redislock.RefusedError{Err: err}
}

// pause waits a moment before a call is tried again: 20 ms, give or take a half, so that those who were refused together
// do not come back together. It reports false if ctx ended.
func pause(ctx context.Context) bool {
	return enginekit.Pause(ctx, 10*time.Millisecond+rand.N(20*time.Millisecond))
}
