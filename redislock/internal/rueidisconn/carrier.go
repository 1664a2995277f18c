// The two kinds of connection that a link can have, behind one interface. link.go uses them; package resp is the other
// kind.

package rueidisconn

import (
	"context"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/enginekit"
	"github.com/interlock-go/interlock/redislock/conn"
	"github.com/interlock-go/interlock/redislock/internal/resp"
	"github.com/redis/rueidis"
)

// carrier is the connection of a link: one of rueidis, or a resp.Conn. It returns a text; an error of the server, or
// one that matches resp.ErrNoText; or an error that says that the connection has failed or ctx has ended. Safe for
// concurrent use.
type carrier interface {
	// Call runs a script, by its source or by its name.
	Call(ctx context.Context, c *conn.Call, how resp.Sending) (string, error)
	// Pipeline runs calls without commands of others in between. There is an answer for each.
	Pipeline(ctx context.Context, commands []resp.Command) []resp.Answer
	// Subscribe runs SUBSCRIBE, SSUBSCRIBE or SUNSUBSCRIBE for one channel.
	Subscribe(ctx context.Context, kind, channel string) error
	// Ping returns nil if there was an answer, even if that was an error.
	Ping(ctx context.Context) error
	// Close ends the connection, and with it everything under way.
	Close()
}

// dedicated is a connection of rueidis that is used as a carrier. It cannot share runs of a script.
type dedicated struct {
	rueidis.DedicatedClient
}

func (d dedicated) Call(ctx context.Context, c *conn.Call, how resp.Sending) (string, error) {
	return textOf(d.Do(ctx, command(d.B(), c, how == resp.InSource)))
}

func (d dedicated) Pipeline(ctx context.Context, commands []resp.Command) []resp.Answer {
	return textsOf(d.DoMulti(ctx, pipeline(d.B(), commands)...), len(commands))
}

func (d dedicated) Subscribe(ctx context.Context, kind, channel string) error {
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

// closing bounds how long Close waits: rueidis sends a PING first, and gives up on its answer after a second.
const closing = 2 * time.Second

// Close closes the connection. If rueidis does not return, the connection is left to it.
func (d dedicated) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), closing)
	defer cancel()
	enginekit.CloseWithin(ctx, func() error { d.DedicatedClient.Close(); return nil })
}

// Ping takes any answer of the server for a sign of life.
func (d dedicated) Ping(ctx context.Context) error {
	return d.Do(ctx, d.B().Ping().Build()).NonRedisError()
}

// textOf returns the text of an answer. An answer that is no text does not mean that the connection failed.
func textOf(r rueidis.RedisResult) (string, error) {
	text, err := r.ToString()
	if err == nil || r.NonRedisError() != nil || isAnswer(err) {
		return text, err
	}
	return "", fmt.Errorf("%w: %w", resp.ErrNoText, err)
}

// textsOf returns the texts of the answers to n calls. If an ASKING was sent before each command, there are two answers
// for each.
func textsOf(rs []rueidis.RedisResult, n int) []resp.Answer {
	texts := make([]resp.Answer, n)
	width := len(rs) / n
	for i := range texts {
		texts[i].Text, texts[i].Err = textOf(rs[i*width+width-1])
	}
	return texts
}

// command builds the command that runs a script, by its source or by its name. The keys are given as plain arguments:
// the connection is chosen already, so rueidis need not compute the slot.
func command(b rueidis.Builder, c *conn.Call, source bool) rueidis.Completed {
	n := int64(len(c.Keys))
	if source {
		return b.Eval().Script(c.Script.Source()).Numkeys(n).Arg(c.Keys...).Arg(c.Args...).Build()
	}
	return b.Evalsha().Sha1(c.Script.SHA()).Numkeys(n).Arg(c.Keys...).Arg(c.Args...).Build()
}

// pipeline builds the commands of a pipeline.
func pipeline(b rueidis.Builder, commands []resp.Command) []rueidis.Completed {
	built := make([]rueidis.Completed, 0, 2*len(commands)+1)
	for _, c := range commands {
		if c.Asking {
			built = append(built, b.Asking().Build())
		}
		built = append(built, command(b, c.Call, c.InSource))
	}
	return built
}

// commandsOf returns the commands of jobs, each by name or by source as its earlier tries require.
func commandsOf(jobs []*conn.Job) []resp.Command {
	commands := make([]resp.Command, len(jobs))
	for i, source := range conn.InSource(jobs) {
		commands[i] = resp.Command{Call: jobs[i].Call, InSource: source, Asking: jobs[i].Try.Asking != ""}
	}
	return commands
}
