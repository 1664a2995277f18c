package etcdlock

import (
	"errors"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/driver"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestErrors_OfServers_AreSortedByWhatTheyMeanForTheOutcome(t *testing.T) {
	unsent := status.Error(codes.Unavailable,
		`connection error: desc = "transport: Error while dialing: connection refused"`)
	for _, c := range []struct {
		err                      error
		copies                   bool
		refused, definite, unset bool
		hint                     string
	}{
		{err: rpctypes.ErrPermissionDenied, refused: true, definite: true, hint: "read and write the keys"},
		{err: rpctypes.ErrPermissionDenied, copies: true, refused: true, hint: "read and write the keys"},
		{err: rpctypes.ErrNoSpace, refused: true, hint: "defragment"},
		{err: rpctypes.ErrAuthFailed, refused: true, definite: true, hint: "password"},
		{err: unsent, unset: true},
		{err: unsent, copies: true},
		{err: uncertainError{unsent}},
		{err: uncertainError{rpctypes.ErrPermissionDenied}, refused: true, hint: "read and write the keys"},
		{err: uncertainError{rpctypes.ErrGRPCRequestTooManyRequests}}, // as grpc's interceptor has it
		{err: status.Error(codes.Unavailable, "transport is closing")},
		{err: errors.New("something new")},
	} {
		err := classed("lock", "x", c.err, c.copies)
		said := driver.Refusal(err)
		if (said != nil) != c.refused || driver.IsDefinite(err) != c.definite || driver.IsNotSent(err) != c.unset ||
			!errors.Is(err, driver.ErrUnavailable) {
			t.Errorf("%v, with copies: %v: %v", c.err, c.copies, err)
		}
		if said != nil && !strings.Contains(said.Hint, c.hint) {
			t.Errorf("%v: what to do is %q", c.err, said.Hint)
		}
	}
}
