package zklock

import (
	"testing"
	"time"
)

// A copy of a request may wait for the turn while the request is refused and forgotten. It must not go on with what is
// forgotten: a hold of which the driver does not know could not be released.
func TestCopyOfARefusedRequest_IsAHoldThatTheDriverKnows(t *testing.T) {
	t.Parallel()
	d := open(t, []string{sharedServer(t).Addr()}, &Options{Root: freshRoot()})
	r := request("lock")
	refused, err := d.enter(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := refused.take(bounded(t)); err != nil {
		t.Fatal(err)
	}
	w := begin(bounded(t), d, r)
	time.Sleep(100 * time.Millisecond) // until the copy waits for the turn; if it comes later the test shows nothing
	d.drop(refused)
	refused.give()
	w.granted(t, "the refused one has given up the turn")
	give(t, d, r)
	take(t, d, request("lock"))
}
