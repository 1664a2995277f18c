package interlock

import "context"

// JoinObservers returns an Observer that tells each of the given ones, in order; nil ones are skipped. All of them are
// told also if one panics; the panic then does what [Observer] says.
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

// functionsOf returns one function of each Observer that has it.
func functionsOf[F func(Event) | func(context.Context, Event)](all []*Observer, get func(*Observer) F) (functions []F) {
	for _, o := range all {
		if f := get(o); f != nil {
			functions = append(functions, f)
		}
	}
	return functions
}

// single returns the only one of functions, or nil if there is none: then it costs nothing.
func single[F any](functions []F) (f F) {
	if len(functions) > 0 {
		f = functions[0]
	}
	return f
}

// inTurn calls call for each number below n. What comes after a call is deferred, so that a panic of that goes on only
// when the others have been called.
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
