package worker

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/memlock"
	"github.com/interlock-go/interlock/torture/history"
)

// What a look records is what was known before it; and nothing, if the hold has ended.
func TestLook_RecordsTheDeadlineOfBefore_AndNothingAfterTheEnd(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		log, err := history.Create(dir, "proc")
		if err != nil {
			t.Fatal(err)
		}
		locks, err := interlock.New(memlock.New(nil), nil)
		if err != nil {
			t.Fatal(err)
		}
		w := newWorker(&Job{}, log, locks, 0)
		lease, err := locks.Mutex("a", &interlock.LockOptions{Lease: 2 * time.Second, NoRenew: true}).Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		want := history.At(lease.Deadline()) // by the system's clock, so about this
		if err := w.look(lease, history.Read); err != nil {
			t.Error(err)
		}
		time.Sleep(3 * time.Second) // virtual
		if err := w.look(lease, history.Read); err == nil {
			t.Error("it lasts after its end")
		}
		if err := locks.Close(); err != nil {
			t.Error(err)
		}
		if err := log.Close(); err != nil {
			t.Error(err)
		}
		all, err := history.Load(dir)
		if err != nil || len(all) != 1 || all[0].Op != history.Read || all[0].Deadline.Sub(want).Abs() > time.Second {
			t.Errorf("recorded %+v, %v; want one look with the deadline %v", all, err, want)
		}
	})
}
