package main

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/redis/rueidis"
)

// stream is the outbox in Redis, which the reservation writes in the same step, read by a group of consumers.
type stream struct {
	c         rueidis.Client
	outboxKey string
	deadKey   string
	consumer  string
	again     string // in milliseconds, see site
}

const group = "orders"

func openStream(ctx context.Context, s *stock, consumer string, again time.Duration) (*stream, error) {
	q := &stream{
		c: s.c, outboxKey: s.key("outbox"), deadKey: s.key("dead"), consumer: consumer,
		again: strconv.FormatInt(again.Milliseconds(), 10),
	}
	err := q.c.Do(ctx, q.c.B().XgroupCreate().Key(q.outboxKey).Group(group).Id("0").Mkstream().Build()).Error()
	if redisErr, ok := rueidis.IsRedisErr(err); ok && redisErr.IsBusyGroup() {
		err = nil // another was first
	}
	return q, err
}

func (*stream) outbox() bool { return true }

func (*stream) send(context.Context, order) error {
	return errors.New("an order comes into the stream with its reservation")
}

// receive looks first for what was delivered to somebody who has not acknowledged it for a while.
func (q *stream) receive(ctx context.Context) (d delivery, found bool, err error) {
	reply, err := q.c.Do(ctx, q.c.B().Xautoclaim().Key(q.outboxKey).Group(group).Consumer(q.consumer).
		MinIdleTime(q.again).Start("0-0").Count(1).Build()).ToArray()
	if err != nil {
		return d, false, err
	}
	if len(reply) > 1 {
		entries, err := reply[1].AsXRange()
		if err != nil {
			return d, false, err
		}
		if len(entries) > 0 {
			return q.deliver(ctx, entries[0])
		}
	}
	streams, err := q.c.Do(ctx, q.c.B().Xreadgroup().Group(group, q.consumer).Count(1).Block(moment.Milliseconds()).
		Streams().Key(q.outboxKey).Id(">").Build()).AsXRead()
	if rueidis.IsRedisNil(err) || err == nil && len(streams[q.outboxKey]) == 0 {
		return d, false, nil
	}
	if err != nil {
		return d, false, err
	}
	return q.deliver(ctx, streams[q.outboxKey][0])
}

func (q *stream) deliver(ctx context.Context, e rueidis.XRangeEntry) (delivery, bool, error) {
	d := delivery{order: order{Request: e.FieldValues["request"], User: e.FieldValues["user"]}}
	d.Quantity, d.garbled = strconv.Atoi(e.FieldValues["quantity"])
	if d.garbled == nil {
		d.garbled = d.check()
	}
	d.ack = func(ctx context.Context) error { return q.finish(ctx, e.ID) }
	d.bury = func(ctx context.Context, reason string) error {
		return q.finish(ctx, e.ID, q.c.B().Xadd().Key(q.deadKey).Id("*").FieldValue().
			FieldValue("request", d.Request).FieldValue("reason", reason).Build())
	}
	times, err := q.times(ctx, e.ID)
	d.times = times
	return d, err == nil, err
}

// times is how often an entry was delivered.
func (q *stream) times(ctx context.Context, id string) (int, error) {
	pending := q.c.B().Xpending().Key(q.outboxKey).Group(group).Start(id).End(id).Count(1).Build()
	rows, err := q.c.Do(ctx, pending).ToArray()
	if err != nil || len(rows) == 0 {
		return 1, err
	}
	fields, err := rows[0].ToArray()
	if err != nil || len(fields) < 4 {
		return 1, err
	}
	n, err := fields[3].AsInt64()
	return int(n), err
}

// finish acknowledges an entry, removes it, and does more in the same step.
func (q *stream) finish(ctx context.Context, id string, more ...rueidis.Completed) error {
	commands := append(rueidis.Commands{q.c.B().Multi().Build()}, more...)
	commands = append(commands,
		q.c.B().Xack().Key(q.outboxKey).Group(group).Id(id).Build(),
		q.c.B().Xdel().Key(q.outboxKey).Id(id).Build(),
		q.c.B().Exec().Build())
	var failed error
	for _, r := range q.c.DoMulti(ctx, commands...) {
		failed = errors.Join(failed, r.Error())
	}
	return failed
}

func (q *stream) pending(ctx context.Context) (int, error) {
	n, err := q.c.Do(ctx, q.c.B().Xlen().Key(q.outboxKey).Build()).AsInt64()
	return int(n), err
}

func (*stream) close() {}
