package zklock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servers"
)

// Locks are read many at a time, and yielded one by one in the order of their names, each with its own queue.
func TestLocks_ReadManyAtOnce_AreYieldedInTheirOrder(t *testing.T) {
	t.Parallel()
	n, root := sharedServer(t), freshRoot()
	d := open(t, []string{n.Addr()}, &Options{Root: root})
	var want []string
	var held []*driver.Request
	for i := range 3*listedAtOnce + 1 {
		r := request(fmt.Sprintf("lock-%03d", i))
		r.Owner = "owner of " + r.Name
		take(t, d, r)
		want, held = append(want, r.Name), append(held, r)
	}
	free := held[listedAtOnce+1] // is left out, although its node may be there
	give(t, d, free)
	want = slices.Delete(want, listedAtOnce+1, listedAtOnce+2)
	var got []string
	for info, err := range d.Locks(bounded(t), "lock-") {
		if err != nil {
			t.Fatal(err)
		}
		if len(info.Holders) != 1 || info.Holders[0].Owner != "owner of "+info.Name {
			t.Errorf("%s is held by %+v", info.Name, info.Holders)
		}
		got = append(got, info.Name)
	}
	if !slices.Equal(got, want) {
		t.Errorf("listed are %v, want %v", got, want)
	}
}

// Who has seen enough ends the reading, and so does the end of its context, which is told once, as the last.
func TestLocks_ThatEndEarly_ReadNoMore(t *testing.T) {
	t.Parallel()
	n, root := sharedServer(t), freshRoot()
	p := servers.NewProxy(t, n.Addr())
	d := open(t, []string{p.Addr()}, &Options{Root: root})
	for i := range 2 * listedAtOnce {
		take(t, d, request(fmt.Sprintf("lock-%03d", i)))
	}
	for info, err := range d.Locks(bounded(t), "") {
		if err != nil || info.Name != "lock-000" {
			t.Fatal(info, err)
		}
		break
	}
	p.Delay(servers.ToClient, 20*time.Millisecond)
	ctx, cancel := context.WithCancel(bounded(t))
	defer cancel()
	all := 0
	var last error
	for _, err := range d.Locks(ctx, "") {
		if last != nil {
			t.Fatalf("after %v came %v", last, err)
		}
		if last = err; err == nil {
			all++
			cancel()
		}
	}
	if all == 0 || all >= 2*listedAtOnce || !errors.Is(last, context.Canceled) {
		t.Errorf("of a listing that was cancelled %d locks were yielded, and then %v", all, last)
	}
}
