package play

import (
	"context"

	"github.com/interlock-go/interlock/lab/exhibit"
	"github.com/interlock-go/interlock/lab/internal/story"
)

// Subscriber returns how a client subscribes at a Redis: with a connection of its own. The story tells of the
// subscription; of a message the client tells itself, see Heard.
func (a *Actor) Subscriber(addr string) exhibit.Subscribe {
	a.p.Helper()
	link := a.Dial(addr, "")
	return func(ctx context.Context, channel string) (next func(ctx context.Context) error, err error) {
		if _, err := link.Do(ctx, "SUBSCRIBE", channel); err != nil {
			return nil, err
		}
		return func(ctx context.Context) error {
			_, err := link.conn.Receive(ctx)
			return err
		}, nil
	}
}

// Heard tells of a message that the client got on a channel.
func (a *Actor) Heard(channel, message string) {
	a.Told("Redis", story.Reply, story.T("message on %s  →  %s", "收到 %s 的消息  →  %s", channel, message))
}
