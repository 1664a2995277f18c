// Pipelines: many scripts in one write. rueidisconn's batch.go sends the parts of a batch with it; call.go waits for
// the answers.

package resp

import (
	"context"
	"errors"
	"slices"

	"github.com/interlock-go/interlock/redislock/conn"
)

// Command is one call of a pipeline.
type Command struct {
	Call     *conn.Call
	InSource bool // the script is sent by its source, not by its name
	Asking   bool // ASKING is sent before it, for a slot that is moving to this node
}

// Answer is the outcome of one call: a text; an error of the server, which is a [ServerError] or matches [ErrNoText];
// or an error of the connection.
type Answer struct {
	Text string
	Err  error
}

// Pipeline runs calls without commands of others in between, and returns an answer for each. It costs one round trip.
// Errors are as for Call; an error of the connection is the answer to all.
func (c *Conn) Pipeline(ctx context.Context, commands []Command) []Answer {
	asking, room := 0, 0
	for i := range commands {
		room += callRoom(commands[i].Call)
		if commands[i].Asking {
			asking++
		}
	}
	results, err := c.together(ctx, len(commands)+asking, func(out []byte) []byte {
		// Renewals of very many holds are megabytes. Growing the buffer step by step would copy them again and again.
		out = slices.Grow(out, room)
		for i := range commands {
			if commands[i].Asking {
				out = appendCommand(out, "ASKING")
			}
			out = appendCall(out, commands[i].Call, commands[i].InSource)
		}
		return out
	})
	if err != nil {
		return Failures(len(commands), err)
	}
	answers := make([]Answer, len(commands))
	for i, next := 0, 0; i < len(commands); i++ {
		if commands[i].Asking { // ASKING has an answer of its own
			next++
		}
		answers[i] = results[next].answer()
		next++
	}
	return answers
}

// Failures returns the answers to n calls that have failed together.
func Failures(n int, err error) []Answer { return slices.Repeat([]Answer{{Err: err}}, n) }

// answer returns the result as the answer to a script.
func (r result) answer() Answer {
	text, isText := r.value.(string)
	switch {
	case r.err != nil:
		return Answer{Err: r.err}
	case !isText:
		return Answer{Err: ErrNoText}
	}
	return Answer{Text: text}
}

// Ping returns nil if there was an answer, even if that was an error.
func (c *Conn) Ping(ctx context.Context) error {
	_, err := c.Do(ctx, "PING")
	var answered ServerError
	if errors.As(err, &answered) {
		return nil
	}
	return err
}
