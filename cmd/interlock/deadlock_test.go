package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/internal/servers"
)

// Named owners of two clients on one server that wait for each other: one of them is told, the other gets on.
func TestDeadlock_OverClientsOnRedis_IsTold(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	url := "redis://" + servers.Redis(t) + "/0?check=warn"
	words := make(chan error, 2)
	var then []func()
	for owner, names := range map[string][]string{"one": {"a", "b"}, "two": {"b", "a"}} {
		c, err := interlock.Open(ctx, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		own := interlock.WithOwner(ctx, owner)
		first, err := c.Lock(own, names[0])
		if err != nil {
			t.Fatal(err)
		}
		then = append(then, func() {
			second, err := c.Lock(first.Context(own), names[1])
			if err == nil {
				err = second.Unlock(ctx)
			}
			words <- errors.Join(err, first.Unlock(ctx))
		})
	}
	for _, wait := range then { // only now: each has its first
		go wait() // ends with the deadlock's end, or with ctx
	}
	told, other := <-words, <-words
	if told == nil { // who gets on may say so before who is told has come back from its Unlock
		told, other = other, told
	}
	if !errors.Is(told, interlock.ErrDeadlock) || !strings.Contains(told.Error(), ", who waits for ") {
		t.Errorf("got %v", told)
	}
	if other != nil {
		t.Errorf("the other: %v", other)
	}
}

// The same, of owners that are named anew for each lock, by one, two and three clients: a name is one owner.
func TestDeadlock_OfOwnersThatAreNamedAnewForEachLock_OnRedis_IsTold(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	url := "redis://" + servers.Redis(t) + "/0?check=warn"
	clients := make([]*interlock.Client, 3)
	for i := range clients {
		c, err := interlock.Open(ctx, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		clients[i] = c
	}
	for _, by := range [][]int{{0, 0, 0}, {0, 1, 0}, {0, 1, 2}} {
		told := make(chan error, len(by))
		var then []func()
		for i, at := range by {
			c, name, owner := clients[at], func(i int) string { return fmt.Sprint(by, i%len(by)) }, fmt.Sprint(by,
				"owner", i)
			first, err := c.Lock(interlock.WithOwner(ctx, owner), name(i))
			if err != nil {
				t.Fatal(err)
			}
			then = append(then, func() {
				second, err := c.Lock(interlock.WithOwner(ctx, owner), name(i+1))
				if err == nil {
					err = second.Unlock(ctx)
				}
				told <- errors.Join(err, first.Unlock(ctx))
			})
		}
		for _, wait := range then { // only now: each has its first
			go wait() // ends with the deadlock's end, or with ctx
		}
		deadlocks := 0
		for range by {
			switch err := <-told; {
			case errors.Is(err, interlock.ErrDeadlock):
				deadlocks++
			case err != nil:
				t.Errorf("by the clients %v: %v", by, err)
			}
		}
		if deadlocks != 1 {
			t.Errorf("by the clients %v: %d were told of a deadlock, want 1", by, deadlocks)
		}
	}
}

// A reader who waits for a mutex whose holder waits to write, of two clients on one server.
func TestDeadlock_OfAReaderAndAWriter_OnRedis_IsTold(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	url := "redis://" + servers.Redis(t) + "/0?check=warn"
	words := make(chan error, 2)
	var then []func()
	for _, reader := range []bool{true, false} {
		c, err := interlock.Open(ctx, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		own := interlock.WithOwner(ctx, fmt.Sprint("reader ", reader))
		first, second := c.RWMutex("a", nil).RLock, c.Mutex("m", nil).Lock
		if !reader {
			first, second = second, c.RWMutex("a", nil).Lock
		}
		l, err := first(own)
		if err != nil {
			t.Fatal(err)
		}
		then = append(then, func() {
			inner, err := second(l.Context(own))
			if err == nil {
				err = inner.Unlock(ctx)
			}
			words <- errors.Join(err, l.Unlock(ctx))
		})
	}
	for _, wait := range then { // only now: each has its first
		go wait() // ends with the deadlock's end, or with ctx
	}
	told, other := <-words, <-words
	if told == nil {
		told, other = other, told
	}
	if !errors.Is(told, interlock.ErrDeadlock) || other != nil {
		t.Errorf("got %v, and the other %v", told, other)
	}
}
