package etcdlock

import (
	"context"
	"errors"
	"testing"

	"github.com/interlock-go/interlock/driver"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// A release that is refused keeps counting from the first refusal while nobody answers it. Only an answer that says
// that nothing is left ends the count.
func TestAnswered_CountsFromTheFirstRefusalUntilNothingIsLeft(t *testing.T) {
	t.Parallel()
	refused := rpctypes.ErrPermissionDenied
	for _, c := range []struct {
		err   error
		heard bool
	}{
		{nil, true},
		{driver.ErrLost, true},
		{errUnsure, true},
		{refused, false},
		{context.DeadlineExceeded, false},
		{context.Canceled, false},
		{uncertainError{errors.New("no answer")}, false},
	} {
		d := &Driver{}
		s := &session{d: d}
		e := &entry{session: s, r: &driver.Request{Key: driver.Key{Kind: driver.KindMutex, Name: "lock"}, ID: "id"}}
		if err := d.answered(e, false, refused); !errors.Is(err, refused) {
			t.Fatalf("a refusal became %v", err)
		}
		since := s.refusedSince
		if err := d.answered(e, false, c.err); !errors.Is(err, c.err) {
			t.Errorf("%v became %v", c.err, err)
		}
		if heard := len(s.unreleased) == 0; heard != c.heard {
			t.Errorf("%v: heard out: %v, want %v", c.err, heard, c.heard)
		}
		if !c.heard && !s.refusedSince.Equal(since) {
			t.Errorf("%v: the count began anew", c.err)
		}
	}
}
