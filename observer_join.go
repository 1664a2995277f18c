package interlock

import "context"

// Several Observers as one.

// JoinObservers returns an Observer that tells each of the given ones, in order; nil ones are skipped. If one panics,
// the others are told all the same, and then the panic does what [Observer] says. A function that only one of them has
// costs nothing more.
func JoinObservers(observers ...*Observer) *Observer {
	var all []*Observer
	for _, o := range observers {
		if o != nil {
			all = append(all, o)
		}
	}
	with := func(get func(*Observer) func(context.Context, Event)) func(context.Context, Event) {
		functions := functionsOf(all, get)
		if len(functions) < 2 {
			return single(functions)
		}
		return func(ctx context.Context, e Event) {
			inTurn(len(functions), func(i int) { functions[i](ctx, e) })
		}
	}
	on := func(get func(*Observer) func(Event)) func(Event) {
		functions := functionsOf(all, get)
		if len(functions) < 2 {
			return single(functions)
		}
		return func(e Event) {
			inTurn(len(functions), func(i int) { functions[i](e) })
		}
	}
	return &Observer{
		Waiting:        with(func(o *Observer) func(context.Context, Event) { return o.Waiting }),
		Acquired:       with(func(o *Observer) func(context.Context, Event) { return o.Acquired }),
		Upgraded:       with(func(o *Observer) func(context.Context, Event) { return o.Upgraded }),
		Failed:         with(func(o *Observer) func(context.Context, Event) { return o.Failed }),
		Renewed:        on(func(o *Observer) func(Event) { return o.Renewed }),
		RenewalFailed:  on(func(o *Observer) func(Event) { return o.RenewalFailed }),
		Lost:           on(func(o *Observer) func(Event) { return o.Lost }),
		Released:       on(func(o *Observer) func(Event) { return o.Released }),
		Retained:       on(func(o *Observer) func(Event) { return o.Retained }),
		RetentionEnded: on(func(o *Observer) func(Event) { return o.RetentionEnded }),
		Recalled:       on(func(o *Observer) func(Event) { return o.Recalled }),
		Settling:       on(func(o *Observer) func(Event) { return o.Settling }),
		Settled:        on(func(o *Observer) func(Event) { return o.Settled }),
	}
}

// functionsOf returns the function that get picks, of each Observer that has it.
func functionsOf[F func(Event) | func(context.Context, Event)](all []*Observer, get func(*Observer) F) (functions []F) {
	for _, o := range all {
		if f := get(o); f != nil {
			functions = append(functions, f)
		}
	}
	return functions
}

// single returns the only function, or nil if there is none: an Observer without a function costs nothing, so it stays
// nil.
func single[F any](functions []F) (f F) {
	if len(functions) > 0 {
		f = functions[0]
	}
	return f
}

// inTurn calls call for each number below n. The rest after a call is deferred, so that a panic goes on only when all
// of them have been called.
func inTurn(n int, call func(i int)) {
	var from func(i int)
	from = func(i int) {
		if i+1 < n {
			defer from(i + 1)
		}
		call(i)
	}
	from(0)
}
