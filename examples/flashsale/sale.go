package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// sale is what is sold, to which customer and when.
type sale struct {
	Stock  int           // at the beginning
	Limit  int           // items for each user
	Opens  time.Time     // by the clock of Redis, which alone decides
	Closes time.Time     //
	Hold   time.Duration // how long a reservation waits for its order
}

// What the columns of the database hold.
const (
	longestName = 64
	mostItems   = 1_000_000
)

func (s sale) check() error {
	switch {
	case s.Stock < 0 || s.Stock > mostItems || s.Limit < 1 || s.Limit > mostItems:
		return fmt.Errorf("the stock must be 0 to %d, and the limit of each user 1 to %d", mostItems, mostItems)
	case s.Hold <= 0:
		return errors.New("reservations must be held for more than 0")
	}
	return nil
}

// order is what a user asks for. The request is the user's own id for it: repeated, it is the same order.
type order struct {
	Request  string
	User     string
	Quantity int
}

func (o order) check() error {
	if o.Request == "" || len(o.Request) > longestName || o.User == "" || len(o.User) > longestName ||
		strings.Contains(o.User, "|") || o.Quantity < 1 || o.Quantity > mostItems {
		return fmt.Errorf("an order needs a request and a user of 1 to %d bytes, the user without |, "+
			"and a quantity of 1 to %d, not %+v", longestName, mostItems, o)
	}
	return nil
}

// answer is what a user is told at once. "reserved" is not "sold": that is said when the database has it.
type answer string

const (
	reserved answer = "reserved"
	soldOut  answer = "sold_out"
	overMax  answer = "limit"    // the user would have more than allowed
	tooEarly answer = "early"    // the sale has not begun
	closed   answer = "closed"   // the sale is over, or there is none
	conflict answer = "conflict" // the request was used for another order before
	released answer = "released" // the reservation was given back; the user may ask anew, with a new request
	sold     answer = "sold"     // the order stands in the database
)

// state is what has become of a reservation.
//
//	RESERVED ──take──▶ TAKEN ──the database has committed──▶ CONFIRMED
//	    │                └──the database refused──▶ RELEASED
//	    └──not sent, or its time is over──▶ RELEASED
type state string

const (
	isReserved  state = "RESERVED"
	isTaken     state = "TAKEN"
	isConfirmed state = "CONFIRMED"
	isReleased  state = "RELEASED"
)

// reservation is a record in Redis: state|user|quantity|reason.
type reservation struct {
	order
	state  state
	reason string // why it was released
}

func readReservation(request, record string) (reservation, error) {
	fields := strings.SplitN(record, "|", 4)
	if len(fields) != 4 {
		return reservation{}, fmt.Errorf("the record %q of %s is no reservation", record, request)
	}
	quantity, err := strconv.Atoi(fields[2])
	if err != nil {
		return reservation{}, fmt.Errorf("the record %q of %s is no reservation: %w", record, request, err)
	}
	return reservation{
		order: order{Request: request, User: fields[1], Quantity: quantity},
		state: state(fields[0]), reason: fields[3],
	}, nil
}

// answer is what the user is told about a reservation that there was before.
func (r reservation) answer() answer {
	switch r.state {
	case isConfirmed:
		return sold
	case isReleased:
		return released
	default:
		return reserved
	}
}
