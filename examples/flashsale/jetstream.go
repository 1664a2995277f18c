package main

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// natsQueue is a stream of NATS JetStream. It knows nothing of Redis, so between the reservation and the message there
// is a gap: an order that cannot be sent is given back, and one whose gate has died is given back by the sweeper.
type natsQueue struct {
	conn     *nats.Conn
	js       jetstream.JetStream
	stream   jetstream.Stream
	consumer jetstream.Consumer
	subject  string
}

// sendTimeout bounds how long a gate waits for the queue.
const sendTimeout = 3 * time.Second

func openNATS(ctx context.Context, url, item string, again time.Duration) (*natsQueue, error) {
	conn, err := nats.Connect(url, nats.Timeout(10*time.Second),
		nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond), nats.ReconnectBufSize(-1))
	if err != nil {
		return nil, err
	}
	q := &natsQueue{conn: conn, subject: "orders." + item}
	if q.js, err = jetstream.New(conn); err == nil {
		err = q.open(ctx, strings.ReplaceAll(item, ".", "_"), again)
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return q, nil
}

func (q *natsQueue) open(ctx context.Context, name string, again time.Duration) (err error) {
	// Creating what is there already, as it is, changes nothing.
	q.stream, err = q.js.CreateStream(ctx, jetstream.StreamConfig{
		Name: name, Subjects: []string{q.subject}, Retention: jetstream.WorkQueuePolicy,
		Duplicates: 10 * time.Minute, // in which a second copy of a message is dropped
	})
	if err != nil {
		return err
	}
	dead := jetstream.StreamConfig{Name: name + "_dead", Subjects: []string{"dead." + q.subject}}
	if _, err := q.js.CreateStream(ctx, dead); err != nil {
		return err
	}
	q.consumer, err = q.stream.CreateConsumer(ctx, jetstream.ConsumerConfig{
		Durable: group, AckPolicy: jetstream.AckExplicitPolicy, AckWait: again,
	})
	return err
}

func (*natsQueue) outbox() bool { return false }

// send waits until the queue has the message. The request is its id, so that repeating it does not make two.
func (q *natsQueue) send(ctx context.Context, o order) error {
	text, err := json.Marshal(o)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	_, err = q.js.Publish(ctx, q.subject, text, jetstream.WithMsgID(o.Request), jetstream.WithRetryAttempts(0))
	return err
}

func (q *natsQueue) receive(ctx context.Context) (d delivery, found bool, err error) {
	batch, err := q.consumer.Fetch(1, jetstream.FetchMaxWait(moment))
	if err != nil {
		return d, false, err
	}
	for m := range batch.Messages() {
		return q.deliver(m), true, nil
	}
	if err := batch.Error(); err != nil && !errors.Is(err, nats.ErrTimeout) {
		return d, false, err
	}
	return d, false, ctx.Err()
}

func (q *natsQueue) deliver(m jetstream.Msg) (d delivery) {
	if d.garbled = json.Unmarshal(m.Data(), &d.order); d.garbled == nil {
		d.garbled = d.check()
	}
	d.times = 1
	if meta, err := m.Metadata(); err == nil {
		d.times = int(min(meta.NumDelivered, 1<<20))
	}
	d.ack = m.DoubleAck // waits for the queue's word
	d.bury = func(ctx context.Context, reason string) error {
		_, err := q.js.PublishMsg(ctx, &nats.Msg{
			Subject: "dead." + q.subject, Data: m.Data(), Header: nats.Header{"Reason": []string{reason}},
		})
		if err != nil {
			return err
		}
		return m.DoubleAck(ctx)
	}
	return d
}

// pending counts what is kept: a work queue forgets what was acknowledged.
func (q *natsQueue) pending(ctx context.Context) (int, error) {
	info, err := q.stream.Info(ctx)
	if err != nil {
		return 0, err
	}
	return int(min(info.State.Msgs, 1<<31)), nil
}

func (q *natsQueue) close() { q.conn.Close() }
