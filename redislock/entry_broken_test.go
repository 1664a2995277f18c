package redislock

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servers"
)

// holderWhoCounts returns a driver, a request that counts how often it is told of its loss, and that count.
func holderWhoCounts(t *testing.T) (*Driver, *driver.Request, *int) {
	t.Helper()
	d := open(t, soloOption(servers.Redis(t)), nil)
	told := 0
	r := &driver.Request{
		Key: driver.Key{Kind: driver.KindMutex, Name: "lock"}, ID: "id", Owner: "owner", Lease: time.Minute, Tokens: 1,
		Try: true,
	}
	r.Lost = func(driver.LostReason, error) { told++ }
	return d, r, &told
}

// In a Cluster each node passes on that a lock was taken, so that may come again when the same
// request is asked again already.
func TestBroken_OfARequestThatIsAskedAgain_IsNotToldTwice(t *testing.T) {
	d, r, told := holderWhoCounts(t)
	first, err := d.enter(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.hold(r.ID, first); err != nil {
		t.Fatal(err)
	}
	(*listener)(d).Pushed(1, d.channel, "B id 1")
	if *told != 1 {
		t.Fatalf("the holder was told %d times", *told)
	}
	again, err := d.enter(r)
	if err != nil {
		t.Fatal(err)
	}
	(*listener)(d).Pushed(2, d.channel, "B id 1")
	d.leave(r.ID, again, true, true) // the server says that it is over
	if *told != 1 {
		t.Errorf("the holder was told %d times", *told)
	}
}

func TestBroken_BeforeTheGrantIsKnown_IsToldOnceAfterIt(t *testing.T) {
	d, r, told := holderWhoCounts(t)
	e, err := d.enter(r)
	if err != nil {
		t.Fatal(err)
	}
	(*listener)(d).Pushed(1, d.channel, "B id 1")
	(*listener)(d).Pushed(2, d.channel, "B id 1")
	if *told != 0 {
		t.Errorf("told %d times of the loss of what it does not know yet", *told)
	}
	if err := d.hold(r.ID, e); err != nil {
		t.Fatal(err)
	}
	(*listener)(d).Pushed(3, d.channel, "B id 1")
	if *told != 1 {
		t.Errorf("told %d times", *told)
	}
	if err := d.Release(context.Background(), &driver.Release{Key: r.Key, ID: r.ID}); !errors.Is(err, driver.ErrLost) {
		t.Errorf("its release says %v", err)
	}
}
