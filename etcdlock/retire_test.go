package etcdlock

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/driver"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
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
		synctest.Test(t, func(t *testing.T) {
			d := &Driver{}
			s := &session{d: d, timeout: time.Minute}
			e := &entry{session: s, r: &driver.Request{Key: driver.Key{Kind: driver.KindMutex, Name: "lock"}, ID: "id"}}
			if err := d.answered(e, false, refused); !errors.Is(err, refused) {
				t.Fatalf("a refusal became %v", err)
			}
			time.Sleep(s.timeout)
			if err := d.answered(e, false, c.err); !errors.Is(err, c.err) {
				t.Errorf("%v became %v", c.err, err)
			}
			if heard := s.refused.Err() == nil; heard != c.heard || heard != (d.current == s) {
				t.Errorf("%v: heard out: %v, want %v", c.err, heard, c.heard)
			}
			if spent := s.refused.Spent(s.timeout, true); spent == c.heard {
				t.Errorf("%v: spent: %v", c.err, spent)
			}
		})
	}
}

// A session that was replaced and has nothing left is no loss, so nobody is warned.
func TestSessionLost_IsAWarningUnlessItWasReplaced(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{s.node.Addr()}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	log := &bytes.Buffer{}
	warnings := slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelInfo}))
	d, err := New(s.ctx(), client, &Options{Session: time.Minute, Logger: warnings})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	for _, cause := range []error{errReplaced, errUnreleased} {
		log.Reset()
		now, err := d.session(s.ctx())
		if err != nil {
			t.Fatal(err)
		}
		now.lose(cause)
		want := errors.Is(cause, errUnreleased)
		if warned := strings.Contains(log.String(), "level=WARN"); warned != want || !want && log.Len() > 0 {
			t.Errorf("%v: %q", cause, log)
		}
	}
}
