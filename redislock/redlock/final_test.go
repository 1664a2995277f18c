package redlock

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// A wait goes on without a node that refuses, and ends with what the nodes say when those that
// are left are no majority.
func TestWait_ThatTooManyNodesRefuseForGood_EndsWithWhatTheySay(t *testing.T) {
	nodes := startNodes(t, fewest)
	for _, n := range nodes {
		if _, err := n.Do(t.Context(), "ACL", "SETUSER", "bob", "on", ">secret", "~*", "&*", "+@all"); err != nil {
			t.Fatal(err)
		}
	}
	holder, d := openOn(t, "", nodes), openOn(t, "bob:secret@", nodes)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	held := &driver.Request{
		Key: driver.Key{Kind: driver.KindMutex, Name: rand.Text()}, ID: rand.Text(), Owner: "o", Client: "c", Weight: 1,
		Tokens: 1,
		Lease:  time.Minute,
	}
	if _, err := holder.Acquire(ctx, held); err != nil {
		t.Fatal(err)
	}
	queued, ended := make(chan struct{}, 1024), make(chan error, 1)
	waiter := *held
	waiter.ID, waiter.Waiting = rand.Text(), func(*driver.HeldError) { queued <- struct{}{} }
	go func() { // ends with ctx
		_, err := d.Acquire(ctx, &waiter)
		ended <- err
	}()
	<-queued
	refuse := func(i int) {
		if _, err := nodes[i].Do(ctx, "ACL", "SETUSER", "bob", "-eval", "-evalsha"); err != nil {
			t.Fatal(err)
		}
	}
	refuse(0)
	select {
	case err := <-ended:
		t.Fatalf("one node of three refuses: %v", err)
	case <-time.After(2 * heartbeatEvery): // real: it has asked that node once more
	}
	refuse(1)
	err := <-ended
	if err == nil || strings.Count(err.Error(), "NOPERM") < 2 || errors.Is(err, context.DeadlineExceeded) ||
		driver.IsDefinite(err) {
		t.Errorf("the wait ended with %v", err)
	}
}
