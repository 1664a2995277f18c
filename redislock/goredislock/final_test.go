package goredislock

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servers"
	"github.com/interlock-go/interlock/redislock"
	"github.com/redis/go-redis/v9"
)

func TestWait_WhoseRightsAreTakenAway_EndsWithWhatTheServerSays(t *testing.T) {
	for name, open := range ways {
		t.Run(name, func(t *testing.T) { waitWithoutRights(t, open) })
	}
}

func waitWithoutRights(t *testing.T, open way) {
	s := servers.RedisServer(t, &servers.RedisOptions{Users: []string{"bob on >secret ~* &* +@all"}})
	bob := redis.NewClient(&redis.Options{Addr: s.Addr(), Username: "bob", Password: "secret"})
	defer func() { _ = bob.Close() }()
	d, err := open(bob, &redislock.Options{Check: redislock.CheckNone})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	r := driver.Request{
		Key: driver.Key{Kind: driver.KindMutex, Name: "a"}, ID: "holder", Owner: "o", Client: "c", Lease: time.Minute,
		Tokens: 1,
	}
	if _, err := d.Acquire(ctx, &r); err != nil {
		t.Fatal(err)
	}
	queued, ended := make(chan struct{}, 64), make(chan error, 1)
	waiter := r
	waiter.ID, waiter.Waiting = "waiter", func(*driver.HeldError) { queued <- struct{}{} }
	go func() { // ends with ctx
		_, err := d.Acquire(ctx, &waiter)
		ended <- err
	}()
	<-queued
	if _, err := s.Do(ctx, "ACL", "SETUSER", "bob", "-eval", "-evalsha"); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "NOPERM") ||
		errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the wait ended with %v", err)
	}
}
