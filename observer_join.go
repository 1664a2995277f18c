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
		return joinCalls(all, get)
	}
	on := func(get func(*Observer) func(Event)) func(Event) {
		each := joinCalls(all, func(o *Observer) func(context.Context, Event) {
			if f := get(o); f != nil {
				return func(_ context.Context, e Event) { f(e) }
			}
			return nil
		})
		if each == nil {
			return nil
		}
		return func(e Event) { each(nil, e) } //nolint:staticcheck // nobody below takes a context
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

// joinCalls returns what calls one function of each Observer, or nil if none has it: then it costs nothing.
func joinCalls(all []*Observer, get func(*Observer) func(context.Context, Event)) func(context.Context, Event) {
	var functions observerCalls
	for _, o := range all {
		if f := get(o); f != nil {
			functions = append(functions, f)
		}
	}
	switch len(functions) {
	case 0:
		return nil
	case 1:
		return functions[0]
	}
	return functions.each
}

// observerCalls are functions of several Observers.
type observerCalls []func(context.Context, Event)

// each calls all of them. The rest of them is deferred, so that a panic of the first goes on only after that.
func (f observerCalls) each(ctx context.Context, e Event) {
	if len(f) > 1 {
		defer f[1:].each(ctx, e)
	}
	f[0](ctx, e)
}
