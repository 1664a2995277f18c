package redislock

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/redis/rueidis"
)

// rueidisCarrier is the connection of a link: one of rueidis, or a wire. What it returns is a text, an error of the
// server or one that matches errNoText, or an error that says that the connection failed or ctx ended.
type rueidisCarrier interface {
	// call runs a script, by its source or by its name.
	call(ctx context.Context, c *Call, how sending) (string, error)
	// pipeline runs jobs that nobody else's commands come between.
	pipeline(ctx context.Context, jobs []*rueidisJob) []rueidisText
	// subscribe runs SSUBSCRIBE and the like for one channel.
	subscribe(ctx context.Context, kind, channel string) error
	// ping returns nil if there was an answer, whatever it was.
	ping(ctx context.Context) error
	// Close ends the connection.
	Close()
}

// rueidisText is the answer to one call.
type rueidisText struct {
	text string
	err  error
}

// failures returns the answers to n calls that have failed together.
func failures(n int, err error) []rueidisText { return slices.Repeat([]rueidisText{{err: err}}, n) }

// isAnswer reports whether a carrier's error, or nil, is what the server has answered.
func isAnswer(err error) bool {
	if err == nil {
		return true
	}
	_, isAnswer := answer(err)
	return isAnswer || errors.Is(err, errNoText)
}

// answer returns the message of an error that a server has answered with.
func answer(err error) (string, bool) {
	var theirs *rueidis.RedisError
	var ours serverError
	switch {
	case errors.As(err, &theirs):
		return theirs.Error(), true
	case errors.As(err, &ours):
		return ours.Error(), true
	}
	return "", false
}

// rueidisDedicated is a connection of rueidis that is used as a carrier.
type rueidisDedicated struct {
	rueidis.DedicatedClient
}

func (d rueidisDedicated) call(ctx context.Context, c *Call, how sending) (string, error) {
	return textOf(d.Do(ctx, command(d.B(), c, how == inSource)))
}

func (d rueidisDedicated) pipeline(ctx context.Context, jobs []*rueidisJob) []rueidisText {
	return textsOf(d.DoMulti(ctx, pipeline(d.B(), jobs)...), len(jobs))
}

func (d rueidisDedicated) subscribe(ctx context.Context, kind, channel string) error {
	b := d.B()
	var command rueidis.Completed
	switch kind {
	case "subscribe":
		command = b.Subscribe().Channel(channel).Build()
	case "ssubscribe":
		command = b.Ssubscribe().Channel(channel).Build()
	case "sunsubscribe":
		command = b.Sunsubscribe().Channel(channel).Build()
	}
	return d.Do(ctx, command).Error()
}

func (d rueidisDedicated) ping(ctx context.Context) error {
	return d.Do(ctx, d.B().Ping().Build()).NonRedisError()
}

// textOf returns the text of an answer.
func textOf(r rueidis.RedisResult) (string, error) {
	text, err := r.ToString()
	if err == nil || r.NonRedisError() != nil || isAnswer(err) {
		return text, err
	}
	return "", fmt.Errorf("%w: %w", errNoText, err)
}

// textsOf returns the texts of the answers to n calls. There may be an ASKING before each command.
func textsOf(rs []rueidis.RedisResult, n int) []rueidisText {
	texts := make([]rueidisText, n)
	width := len(rs) / n
	for i := range texts {
		texts[i].text, texts[i].err = textOf(rs[i*width+width-1])
	}
	return texts
}

// command builds the command that runs a script, by its source or by its name. The keys are given as arguments: the
// connection is chosen already, so rueidis need not find out the slot.
func command(b rueidis.Builder, c *Call, source bool) rueidis.Completed {
	n := int64(len(c.Keys))
	if source {
		return b.Eval().Script(c.Script.Source()).Numkeys(n).Arg(c.Keys...).Arg(c.Args...).Build()
	}
	return b.Evalsha().Sha1(c.Script.SHA()).Numkeys(n).Arg(c.Keys...).Arg(c.Args...).Build()
}

// pipeline builds the commands of jobs.
func pipeline(b rueidis.Builder, jobs []*rueidisJob) []rueidis.Completed {
	commands := make([]rueidis.Completed, 0, 2*len(jobs)+1)
	eachJob(jobs, func(j *rueidisJob, source bool) {
		if j.try.asking != "" {
			commands = append(commands, b.Asking().Build())
		}
		commands = append(commands, command(b, j.call, source))
	})
	return commands
}

// eachJob calls f for each job of a pipeline. A script that the server does not know is sent once: what follows in the
// same pipeline can name it.
func eachJob(jobs []*rueidisJob, f func(j *rueidisJob, source bool)) {
	var sent []*Script
	for _, j := range jobs {
		source := j.try.evals > 0 && !slices.Contains(sent, j.call.Script)
		if source {
			sent = append(sent, j.call.Script)
		}
		f(j, source)
	}
}
