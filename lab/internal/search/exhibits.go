package search

import (
	"context"
	"strings"
	"time"

	"github.com/interlock-go/interlock/lab/exhibit/d01setnx"
	"github.com/interlock-go/interlock/lab/exhibit/d02expire"
	"github.com/interlock-go/interlock/lab/exhibit/d03blinddel"
	"github.com/interlock-go/interlock/lab/exhibit/d04getdel"
	"github.com/interlock-go/interlock/lab/exhibit/d05owned"
	"github.com/interlock-go/interlock/lab/exhibit/d06getset"
	"github.com/interlock-go/interlock/lab/internal/story"
)

// lease is that of all exhibits which have one, in seconds.
const lease = 10

// Exhibit is one that can be searched.
type Exhibit struct {
	ID      string
	Title   story.Text
	Program Program
	Clocks  bool // its clients look at their own clocks, which may jump
}

// All returns the exhibits in the order of the articles.
func All() []*Exhibit {
	return []*Exhibit{
		{ID: "D1", Title: story.T("SETNX and DEL", "SETNX 加 DEL"), Program: d01},
		{ID: "D2", Title: story.T("SETNX, then EXPIRE", "先 SETNX，再 EXPIRE"), Program: d02},
		{ID: "D3", Title: story.T("SET NX EX, and a DEL that does not ask", "SET NX EX，加不问是谁的 DEL"), Program: d03},
		{ID: "D4", Title: story.T("the owner as the value; GET, compare, DEL", "值里写上所有者；GET、比较、DEL"), Program: d04},
		{
			ID: "D5a", Program: d05((*d05owned.Lock).UnlockByScript),
			Title: story.T("compare and delete in a script", "用脚本比较并删除"),
		},
		{
			ID: "D5b", Program: d05((*d05owned.Lock).UnlockByWatch),
			Title: story.T("compare and delete by WATCH, MULTI, EXEC", "用 WATCH、MULTI、EXEC 比较并删除"),
		},
		{
			ID: "D6a", Program: d06((*d06getset.Lock).TryLockByDel), Clocks: true,
			Title: story.T("an instant as the value; an old lock is removed with DEL",
				"以到期时刻为值；过期的锁用 DEL 删掉"),
		},
		{
			ID: "D6b", Program: d06((*d06getset.Lock).TryLock), Clocks: true,
			Title: story.T("an instant as the value; an old lock is replaced with GETSET",
				"以到期时刻为值；过期的锁用 GETSET 替换"),
		},
	}
}

// Find returns the exhibits of an id, in whatever case: D5 are D5a and D5b.
func Find(id string) []*Exhibit {
	var found []*Exhibit
	for _, e := range All() {
		if strings.EqualFold(e.ID, id) || strings.EqualFold(strings.TrimRight(e.ID, "ab"), id) {
			found = append(found, e)
		}
	}
	return found
}

func d01(ctx context.Context, c Client) error {
	lock := &d01setnx.Lock{Conn: c, Key: key}
	got, err := lock.TryLock(ctx, c.Name())
	if err := work(ctx, c, got, err); err != nil {
		return err
	}
	return lock.Unlock(ctx)
}

func d02(ctx context.Context, c Client) error {
	lock := &d02expire.Lock{Conn: c, Key: key, Now: c.Now}
	got, err := lock.TryLock(ctx, c.Name(), lease)
	if err := work(ctx, c, got, err); err != nil {
		return err
	}
	return lock.Unlock(ctx)
}

func d03(ctx context.Context, c Client) error {
	lock := &d03blinddel.Lock{Conn: c, Key: key}
	got, err := lock.TryLock(ctx, lease)
	if err := work(ctx, c, got, err); err != nil {
		return err
	}
	return lock.Unlock(ctx)
}

func d04(ctx context.Context, c Client) error {
	lock := &d04getdel.Lock{Conn: c, Key: key}
	got, err := lock.TryLock(ctx, c.Name(), lease)
	if err := work(ctx, c, got, err); err != nil {
		return err
	}
	return lock.Unlock(ctx, c.Name())
}

// d05 is a program that releases in one of the exhibit's ways.
func d05(unlock func(*d05owned.Lock, context.Context, string) error) Program {
	return func(ctx context.Context, c Client) error {
		lock := &d05owned.Lock{Conn: c, Key: key}
		got, err := lock.TryLock(ctx, c.Name(), lease)
		if err := work(ctx, c, got, err); err != nil {
			return err
		}
		return unlock(lock, ctx, c.Name())
	}
}

// d06 is a program that takes the lock in one of the exhibit's ways.
func d06(try func(*d06getset.Lock, context.Context) (bool, error)) Program {
	return func(ctx context.Context, c Client) error {
		lock := &d06getset.Lock{Conn: c, Key: key, Lease: lease * time.Second, Now: c.Now}
		got, err := try(lock, ctx)
		if err := work(ctx, c, got, err); err != nil {
			return err
		}
		_, err = lock.Unlock(ctx)
		return err
	}
}
