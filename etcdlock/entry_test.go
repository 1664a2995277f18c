package etcdlock

import (
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// A copy of a request may wait for the turn while the request is refused and forgotten. It must not go on with what is
// forgotten: a hold of which the driver does not know could not be renewed.
func TestCopyOfARefusedRequest_IsAHoldThatTheDriverKnows(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	d := s.opens(s.node.Addr(), time.Minute)
	r := s.ask("lock")
	refused, err := d.enter(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := refused.take(s.ctx()); err != nil {
		t.Fatal(err)
	}
	granted := make(chan error, 1)
	go func() { // ends with the context
		_, err := d.Acquire(s.ctx(), r)
		granted <- err
	}()
	time.Sleep(100 * time.Millisecond) // until the copy waits for the turn; if it comes later the test shows nothing
	d.drop(refused)
	refused.yield()
	if err := <-granted; err != nil {
		t.Fatal(err)
	}
	d.Renew(s.ctx(), []driver.Renewal{{Key: r.Key, ID: r.ID}}, func(_ int, err error) {
		if err != nil {
			t.Errorf("renew: %v", err)
		}
	})
	if err := s.release(d, r); err != nil {
		t.Errorf("release: %v", err)
	}
}
