package redislock

import (
	"errors"
	"testing"

	"github.com/interlock-go/interlock/driver"
)

// heldEntry returns a driver that holds the lock of the request.
func heldEntry(t *testing.T) (*Driver, *driver.Request) {
	t.Helper()
	d, r, _ := holderWhoCounts(t)
	e, err := d.enter(r)
	if err == nil {
		err = d.hold(r.ID, e)
	}
	if err != nil {
		t.Fatal(err)
	}
	return d, r
}

// The release is plain, so it leaves no tombstone on the server: a copy that comes before its answer must be refused
// here. The server, which has forgotten the request by then, would grant it to nobody.
func TestCopy_ThatComesWhileTheReleaseIsUnderWay_IsRefused(t *testing.T) {
	d, r := heldEntry(t)
	if kind := d.releaseKind(&driver.Release{Key: r.Key, ID: r.ID}); kind != "" {
		t.Fatalf("the release is of the kind %q", kind)
	}
	if _, err := d.enter(r); !errors.Is(err, driver.ErrLost) {
		t.Errorf("the copy: %v", err)
	}
}

func TestCopy_ThatCameBeforeTheRelease_HasItLeaveATombstone(t *testing.T) {
	d, r := heldEntry(t)
	if _, err := d.enter(r); err != nil {
		t.Fatal(err)
	}
	if kind := d.releaseKind(&driver.Release{Key: r.Key, ID: r.ID}); kind != "r" {
		t.Errorf("the release is of the kind %q", kind)
	}
}
