package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/console/board"
	"github.com/interlock-go/interlock/driver"
)

// topNow is when the golden screens are drawn.
var topNow = time.Date(2026, 11, 21, 2, 10, 15, 0, time.Local)

func ago(d time.Duration) time.Time { return topNow.Add(-d) }

// topBoard has of everything one: a wide name, one that would break a terminal, several holders, a cycle, what is
// retained, what rests, what cannot be read.
func topBoard() *board.Board {
	yes := board.Knowledge{OK: true}
	holder := func(client, owner string, held, left time.Duration, token uint64) board.Holder {
		return board.Holder{
			Client: client, Owner: owner, Since: ago(held), Until: topNow.Add(left), Token: token, Weight: 1,
		}
	}
	infos := []driver.LockInfo{
		{Kind: interlock.KindMutex, Name: "a\x1b[2Jb\n"},
		{Kind: interlock.KindMutex, Name: "accounts:7"},
		{Kind: interlock.KindMutex, Name: "accounts:9"},
		{Kind: interlock.KindElection, Name: "boss"},
		{Kind: interlock.KindMutex, Name: "cache:warm"},
		{Kind: interlock.KindSemaphore, Name: "convert", Limit: 4},
		{Kind: interlock.KindMutex, Name: "deploy", Unreadable: "written by a later version"},
		{Kind: interlock.KindRWMutex, Name: "index"},
		{Kind: interlock.KindMutex, Name: strings.Repeat("a-very-long-name/", 12)},
		{Kind: interlock.KindMutex, Name: "库存:上海:扣减"},
		{Kind: interlock.KindMutex, Name: "잠금"},
	}
	holders := [][]board.Holder{
		{holder("host-1:100", "o1", time.Second, 29*time.Second, 11)},
		{holder("host-1:101", "alice", 65*time.Second, 20*time.Second, 12)},
		{holder("host-2:102", "bob", 64*time.Second, 21*time.Second, 13)},
		{holder("host-3:103", "o4", 26*time.Hour, 5*time.Second, 14)},
		{{Client: "host-3:103", Since: ago(time.Minute), Until: topNow.Add(time.Minute), Retained: true}},
		{
			holder("host-1:105", "o5", 3*time.Second, 27*time.Second, 16),
			holder("host-2:106", "o6", 9*time.Second, 25*time.Second, 17),
		},
		nil,
		{{
			Client: "host-4:107", Owner: "r", Shared: true, Token: 18,
			Since: ago(time.Minute), Until: topNow.Add(time.Second),
		}},
		{{
			Client: "host-4:108", Owner: "gone", Cooldown: true, Token: 19,
			Since: ago(time.Hour), Until: topNow.Add(time.Second),
		}},
		{holder("主机-5:109", "张三", 12*time.Second, 18*time.Second, 20)},
		{},
	}
	holders[1][0].Label = "nightly backup traceparent=00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	waiters := map[string][]board.Waiter{
		"accounts:7": {{Client: "host-2:102", Owner: "bob", Since: ago(10 * time.Second), Position: 1}},
		"accounts:9": {{Client: "host-1:101", Owner: "alice", Since: ago(9 * time.Second), Position: 1}},
		"index": {
			{Client: "host-9:1", Owner: "w", Label: "rebuild", Since: ago(3 * time.Second), Position: 1},
			{Client: "host-9:2", Owner: "r2", Shared: true, Position: 2},
		},
		"库存:上海:扣减": {
			{Client: "host-6:1", Owner: "李四", Since: ago(2 * time.Second), Position: 1},
			{Client: "host-6:2"},
			{Client: "host-6:3"},
		},
		"잠금": {{Client: "host-7:1", Owner: "o9", Since: ago(time.Second), Position: 1}},
	}
	b := &board.Board{
		SchemaVersion: board.SchemaVersion,
		Taken:         ago(400 * time.Millisecond), Tried: ago(400 * time.Millisecond), TookMs: 3,
		Engine: "redis", URL: "redis://127.0.0.1:6379/0",
		Knows:  board.Knows{List: yes, Waiters: yes, Since: yes, Until: yes, Token: yes, Break: yes},
		Counts: board.Counts{Held: 8, Waiting: 8, Retained: 1, Cooldown: 1, Unreadable: 1, OldestWaiterMs: 10_000},
		Events: []board.Event{
			{
				Time: ago(time.Second), Event: board.Held, Kind: interlock.KindMutex, Name: "a\x1b[2Jb\n",
				Client: "host-1:100", Owner: "o1", Token: 11,
			},
			{
				Time: ago(4 * time.Second), Event: board.Released, Kind: interlock.KindRWMutex, Name: "index",
				Client: "host-8:1", Owner: "r0", Why: "the lock stays closed for a while",
			},
			{
				Time: ago(24 * time.Hour), Event: board.Ended, Kind: interlock.KindMutex, Name: "库存:上海:扣减",
				Client: "host-0:1",
			},
		},
	}
	for i, info := range infos {
		l := board.LockOf(info, true)
		l.Holders, l.Waiters = holders[i], append(l.Waiters, waiters[info.Name]...)
		b.Locks = append(b.Locks, l)
	}
	g := board.WaitsFor(b.Locks)
	b.Edges, b.Cycles = g.Edges, g.Cycles
	return b
}

// pressed is a top of that size after keys.
func pressed(b *board.Board, width, height int, keys ...string) *topModel {
	m := newTopModel(byWaiters, time.Second)
	m.width, m.height = width, height
	m.take(b)
	for _, k := range keys {
		m.key(k)
	}
	return m
}

// manyLocks is a board with so many locks, each with a waiter.
func manyLocks(n int) *board.Board {
	b := topBoard()
	b.Locks = nil
	for i := range n {
		l := board.LockOf(driver.LockInfo{Kind: interlock.KindMutex, Name: fmt.Sprintf("stock:%06d", i)}, true)
		l.Holders = []board.Holder{{
			Client: "host:1", Owner: "o", Since: ago(time.Duration(i) * time.Second), Token: uint64(i + 1),
		}}
		l.Waiters = []board.Waiter{{Client: "host:2", Owner: "p", Position: 1}}
		b.Locks = append(b.Locks, l)
	}
	return b
}

// BenchmarkTop draws a board of 10,000 locks: again each second, after a key, and after a look that has brought
// another.
func BenchmarkTop(b *testing.B) {
	many := manyLocks(10_000)
	s := &screen{}
	b.Run("again", func(b *testing.B) {
		m := pressed(many, 120, 50)
		b.ReportAllocs()
		for b.Loop() {
			_ = m.frame(topNow)
		}
	})
	b.Run("key", func(b *testing.B) {
		m := pressed(many, 120, 50)
		b.ReportAllocs()
		for b.Loop() {
			m.key("j")
			for _, l := range m.frame(topNow) {
				_ = s.painted(l)
			}
		}
	})
	b.Run("look", func(b *testing.B) {
		m := pressed(many, 120, 50)
		b.ReportAllocs()
		for b.Loop() {
			m.take(many)
			_ = m.frame(topNow)
		}
	})
	b.Run("filter", func(b *testing.B) {
		m := pressed(many, 120, 50, "/")
		b.ReportAllocs()
		for b.Loop() {
			m.key("9")
			_ = m.frame(topNow)
			m.key(keyBackspace)
		}
	})
}
