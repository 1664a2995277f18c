package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/rueidis"
)

//go:embed scripts/reserve.lua
var reserveText string

//go:embed scripts/take.lua
var takeText string

//go:embed scripts/confirm.lua
var confirmText string

//go:embed scripts/release.lua
var releaseText string

var (
	reserveScript = rueidis.NewLuaScript(reserveText)
	takeScript    = rueidis.NewLuaScript(takeText)
	confirmScript = rueidis.NewLuaScript(confirmText)
	releaseScript = rueidis.NewLuaScript(releaseText)
)

// stock is the sale in Redis. Each of its changes is one script, so it happens as a whole or not at all.
type stock struct {
	c    rueidis.Client
	item string
}

// key is one of the sale's keys. They share a hash tag, so that a script may use all of them in a Cluster too.
func (s *stock) key(what string) string { return "{sale:" + s.item + "}:" + what }

func (s *stock) keys() []string {
	return []string{s.key("sale"), s.key("reservations"), s.key("users"), s.key("due"), s.key("outbox")}
}

// load opens the sale with its full stock, unless it is there already.
func (s *stock) load(ctx context.Context, what sale) error {
	full := s.c.B().Hsetnx().Key(s.key("sale")).Field("left").Value(strconv.Itoa(what.Stock)).Build()
	err := s.c.Do(ctx, full).Error()
	if err != nil {
		return err
	}
	return s.c.Do(ctx, s.c.B().Hset().Key(s.key("sale")).FieldValue().
		FieldValue("limit", strconv.Itoa(what.Limit)).
		FieldValue("opens", strconv.FormatInt(what.Opens.UnixMilli(), 10)).
		FieldValue("closes", strconv.FormatInt(what.Closes.UnixMilli(), 10)).
		FieldValue("hold", strconv.FormatInt(what.Hold.Milliseconds(), 10)).Build()).Error()
}

// reserve admits an order: one round trip. fresh says that it was not known before.
func (s *stock) reserve(ctx context.Context, o order, outbox bool) (a answer, fresh bool, err error) {
	flag := "0"
	if outbox {
		flag = "1"
	}
	args := []string{o.Request, o.User, strconv.Itoa(o.Quantity), flag}
	reply, err := reserveScript.Exec(ctx, s.c, s.keys(), args).AsStrSlice()
	if err != nil {
		return "", false, err
	}
	if len(reply) != 2 {
		return "", false, fmt.Errorf("reserve.lua returned %q", reply)
	}
	if reply[0] != "again" {
		return answer(reply[0]), true, nil
	}
	r, err := readReservation(o.Request, reply[1])
	return r.answer(), false, err
}

// take has a consumer take a reservation, and returns the state that it has then.
func (s *stock) take(ctx context.Context, o order) (state, error) {
	text, err := takeScript.Exec(ctx, s.c, s.keys(), []string{o.Request, o.User, strconv.Itoa(o.Quantity)}).ToString()
	return state(text), err
}

// errNotTaken says that Redis knows no reservation that could be confirmed.
var errNotTaken = errors.New("the reservation is not one that was taken")

func (s *stock) confirm(ctx context.Context, request string) error {
	done, err := confirmScript.Exec(ctx, s.c, s.keys(), []string{request}).AsInt64()
	if err == nil && done == 0 {
		err = fmt.Errorf("%s: %w", request, errNotTaken)
	}
	return err
}

// release gives a reservation back that is in the state from, and reports whether it was this call that did.
func (s *stock) release(ctx context.Context, request string, from state, reason string) (bool, error) {
	done, err := releaseScript.Exec(ctx, s.c, s.keys(), []string{request, string(from), reason}).AsInt64()
	return done == 1, err
}

// overdue returns the reservations whose time is over, later by the clock of Redis.
func (s *stock) overdue(ctx context.Context, later time.Duration) ([]string, error) {
	now, err := s.c.Do(ctx, s.c.B().Time().Build()).AsStrSlice()
	if err != nil || len(now) != 2 {
		return nil, errors.Join(err, fmt.Errorf("TIME returned %q", now))
	}
	seconds, err := strconv.ParseInt(now[0], 10, 64)
	if err != nil {
		return nil, err
	}
	end := strconv.FormatInt(seconds*1000+later.Milliseconds(), 10)
	due := s.c.B().Zrange().Key(s.key("due")).Min("-inf").Max(end).Byscore().Limit(0, 1000).Build()
	return s.c.Do(ctx, due).AsStrSlice()
}

// left is how many may still be reserved.
func (s *stock) left(ctx context.Context) (int, error) {
	n, err := s.c.Do(ctx, s.c.B().Hget().Key(s.key("sale")).Field("left").Build()).AsInt64()
	return int(n), err
}

// reservations returns all that there are.
func (s *stock) reservations(ctx context.Context) (map[string]reservation, error) {
	records, err := s.c.Do(ctx, s.c.B().Hgetall().Key(s.key("reservations")).Build()).AsStrMap()
	all := make(map[string]reservation, len(records))
	for request, record := range records {
		r, errRead := readReservation(request, record)
		err = errors.Join(err, errRead)
		all[request] = r
	}
	return all, err
}

// dueRequests are those that the sweeper will come to.
func (s *stock) dueRequests(ctx context.Context) ([]string, error) {
	return s.c.Do(ctx, s.c.B().Zrange().Key(s.key("due")).Min("0").Max("-1").Build()).AsStrSlice()
}
