// Requests to the servers: repeated over several members, with what is known of attempts without an answer. outcome.go
// judges errors; transactions are made so that a repetition does no harm.
//
// Every request on which a lock depends goes through ask, so it may be carried out more than once, and late. Its
// transaction is written so that this does no harm: it compares the create revision of the key that it ends, which no
// later key ever has, or a tomb refuses it. What a session reads of its holds is not repeated here: the next sign of
// life reads it again.

package etcdlock

import (
	"cmp"
	"context"
	"time"

	"github.com/interlock-go/interlock/enginekit"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// firstLimit divides RequestTimeout: that part is the limit of the first attempt at a request if there are several
// members. Each further attempt gets twice as much. grpc takes members in turn and notices only after some ten seconds
// that one hangs; meanwhile every so many requests lose that time. With a much smaller part, slow disks would look like
// a hanging member.
const firstLimit = 8

// ask sends a request until it is answered or refused, or its time is over. Each attempt goes to another connected
// member, if there is one. doubtful says that an attempt was left without an answer: the request may then have been
// carried out, or may be later, whatever another attempt was answered. That an attempt was never sent likewise says
// nothing about the others.
func (d *Driver) ask(ctx context.Context, send func(ctx context.Context) error) (doubtful bool, err error) {
	end := time.Now().Add(d.opts.RequestTimeout)
	limit := d.opts.RequestTimeout
	if d.several {
		limit /= firstLimit
	}
	// A request may fail with a refused connection first and run out of time later. The first tells the user what to
	// mend.
	var why error // the latest error that said more than that the time is over
	for pause := firstPause; ; pause, limit = min(2*pause, longestPause), 2*limit {
		once, cancel := context.WithTimeout(ctx, min(limit, time.Until(end)))
		once, sent := watchingUnsent(once)
		if err = send(once); err == nil {
			cancel()
			return doubtful, nil
		}
		var became outcome
		became, err = sent.became(err)
		late := once.Err() != nil
		cancel()
		switch became {
		case refused:
			return doubtful, err
		case unknown:
			doubtful = true
		case notSent:
		}
		if ctx.Err() != nil {
			return doubtful, ctx.Err()
		}
		if !late || became == notSent {
			why = err
		}
		// An error that does not pass, or no time for another attempt.
		if !isPassing(err) || !time.Now().Add(pause).Before(end) {
			return doubtful, cmp.Or(why, err)
		}
		enginekit.Pause(ctx, pause)
	}
}

// transaction is a request that is safe to send again: its comparisons see whether it was carried out before.
type transaction struct {
	when      []clientv3.Cmp
	then, els []clientv3.Op
}

// commit sends t as ask does. answer is that of the last attempt. With a doubt err is an [uncertainError].
func (d *Driver) commit(ctx context.Context, t *transaction) (answer *clientv3.TxnResponse, doubtful bool, err error) {
	doubtful, err = d.ask(ctx, func(ctx context.Context) (err error) {
		answer, err = d.client.Txn(ctx).If(t.when...).Then(t.then...).Else(t.els...).Commit()
		return err
	})
	if err != nil && doubtful {
		err = uncertainError{err}
	}
	return answer, doubtful, err
}

// uncertainError is the error of the last attempt at a request, after an earlier attempt that had no answer. So the
// request may have been carried out, also if the last attempt was refused or never sent; see classed.
type uncertainError struct{ error }

// Unwrap returns the error of the last attempt.
func (u uncertainError) Unwrap() error { return u.error }

// get reads as ask does. Its errors leave nothing in doubt, because it changes nothing. A read goes through the
// leader's quorum (it is linearizable): a member that was cut off must not answer from its own memory, or a waiter
// could see a holder that has gone, or miss one that has come.
func (d *Driver) get(
	ctx context.Context, key string, opts ...clientv3.OpOption,
) (answer *clientv3.GetResponse, err error) {
	_, err = d.ask(ctx, func(ctx context.Context) (err error) {
		answer, err = d.client.Get(ctx, key, opts...)
		return err
	})
	return answer, err
}

// absent compares whether a key is not there.
func absent(key string) clientv3.Cmp { return clientv3.Compare(clientv3.CreateRevision(key), "=", 0) }

// isOf compares whether a key is the one that was created at that revision, and not a later one of the same name. Keys
// are used again (see names.queueKey), so the name alone would let a late deletion end a hold of another request.
func isOf(key string, revision int64) clientv3.Cmp {
	return clientv3.Compare(clientv3.CreateRevision(key), "=", revision)
}
