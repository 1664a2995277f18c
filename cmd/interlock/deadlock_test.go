package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/drivertest/servers"
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
