// Package optional helps drivers that wrap others: a wrapper has the optional interfaces that the inner driver has, and no
// others.
package optional

import "github.com/interlock-go/interlock/driver"

// Set says which optional interfaces a driver has.
type Set uint8

const (
	renew Set = 1 << iota
	requeue
	inspect
	breaks
	diagnose
)

// All is a driver with every optional interface.
type All interface {
	driver.Driver
	driver.Renewer
	driver.Requeuer
	driver.Inspector
	driver.Breaker
	driver.Diagnoser
}

// Of returns which optional interfaces d has.
func Of(d driver.Driver) Set {
	var set Set
	for bit, has := range map[Set]bool{
		renew: is[driver.Renewer](d), requeue: is[driver.Requeuer](d), inspect: is[driver.Inspector](d),
		breaks: is[driver.Breaker](d), diagnose: is[driver.Diagnoser](d),
	} {
		if has {
			set |= bit
		}
	}
	return set
}

func is[T any](d driver.Driver) bool {
	_, ok := d.(T)
	return ok
}

// Show returns w with the optional interfaces of set alone. A method set is fixed when a type is compiled, so each
// combination needs a type of its own; this is the whole table.
func Show(w All, set Set) driver.Driver {
	type (
		d = driver.Driver
		r = driver.Renewer
		q = driver.Requeuer
		i = driver.Inspector
		b = driver.Breaker
		g = driver.Diagnoser
	)
	switch set {
	case renew:
		return struct {
			d
			r
		}{w, w}
	case requeue:
		return struct {
			d
			q
		}{w, w}
	case renew | requeue:
		return struct {
			d
			r
			q
		}{w, w, w}
	case inspect:
		return struct {
			d
			i
		}{w, w}
	case renew | inspect:
		return struct {
			d
			r
			i
		}{w, w, w}
	case requeue | inspect:
		return struct {
			d
			q
			i
		}{w, w, w}
	case renew | requeue | inspect:
		return struct {
			d
			r
			q
			i
		}{w, w, w, w}
	case breaks:
		return struct {
			d
			b
		}{w, w}
	case renew | breaks:
		return struct {
			d
			r
			b
		}{w, w, w}
	case requeue | breaks:
		return struct {
			d
			q
			b
		}{w, w, w}
	case renew | requeue | breaks:
		return struct {
			d
			r
			q
			b
		}{w, w, w, w}
	case inspect | breaks:
		return struct {
			d
			i
			b
		}{w, w, w}
	case renew | inspect | breaks:
		return struct {
			d
			r
			i
			b
		}{w, w, w, w}
	case requeue | inspect | breaks:
		return struct {
			d
			q
			i
			b
		}{w, w, w, w}
	case renew | requeue | inspect | breaks:
		return struct {
			d
			r
			q
			i
			b
		}{w, w, w, w, w}
	case diagnose:
		return struct {
			d
			g
		}{w, w}
	case renew | diagnose:
		return struct {
			d
			r
			g
		}{w, w, w}
	case requeue | diagnose:
		return struct {
			d
			q
			g
		}{w, w, w}
	case renew | requeue | diagnose:
		return struct {
			d
			r
			q
			g
		}{w, w, w, w}
	case inspect | diagnose:
		return struct {
			d
			i
			g
		}{w, w, w}
	case renew | inspect | diagnose:
		return struct {
			d
			r
			i
			g
		}{w, w, w, w}
	case requeue | inspect | diagnose:
		return struct {
			d
			q
			i
			g
		}{w, w, w, w}
	case renew | requeue | inspect | diagnose:
		return struct {
			d
			r
			q
			i
			g
		}{w, w, w, w, w}
	case breaks | diagnose:
		return struct {
			d
			b
			g
		}{w, w, w}
	case renew | breaks | diagnose:
		return struct {
			d
			r
			b
			g
		}{w, w, w, w}
	case requeue | breaks | diagnose:
		return struct {
			d
			q
			b
			g
		}{w, w, w, w}
	case renew | requeue | breaks | diagnose:
		return struct {
			d
			r
			q
			b
			g
		}{w, w, w, w, w}
	case inspect | breaks | diagnose:
		return struct {
			d
			i
			b
			g
		}{w, w, w, w}
	case renew | inspect | breaks | diagnose:
		return struct {
			d
			r
			i
			b
			g
		}{w, w, w, w, w}
	case requeue | inspect | breaks | diagnose:
		return struct {
			d
			q
			i
			b
			g
		}{w, w, w, w, w}
	case renew | requeue | inspect | breaks | diagnose:
		return struct {
			d
			r
			q
			i
			b
			g
		}{w, w, w, w, w, w}
	}
	return struct{ d }{w}
}
