package main

import (
	"math"

	"github.com/interlock-go/interlock/bench/stats"
	"github.com/interlock-go/interlock/bench/workload"
	"golang.org/x/perf/benchfmt"
)

// Units that demands and tables name.
const (
	rate            = "locks/s"
	perOp           = "ns/op"
	p50             = "p50-ns"
	p99             = "p99-ns"
	worstShare      = "worst"
	jainIndex       = "jain"
	clientCPU       = "cpu-ns/lock"
	serverCPU       = "server-cpu-ns/lock"
	commands        = "commands/lock"
	scriptTime      = "scripts-ns/lock"
	roundTrips      = "round-trips/lock"
	inTrips         = "round-trips" // a time, in round trips through the same way
	waitingCommands = "waiting-commands/s"
	perHerd         = "ns/herd"
	perGrant        = "ns/grant"
	commandsAGrant  = "commands/grant"
	unserved        = "unserved"
	commandsASecond = "commands/s"
	bytesHeld       = "B/hold"
	serverBytes     = "server-B/hold"
	goroutinesHeld  = "goroutines/hold"
	lostHolds       = "lost"
	missing         = "missing"
	freed           = "freed-ns"
	clientShare     = "cpu-share"
	serverShare     = "server-cpu-share"
)

// values are what a result says, by unit.
func (sc *scenario) values(r *workload.Result) []benchfmt.Value {
	switch sc.job.Kind {
	case workload.Serial:
		return append([]benchfmt.Value{of(r.PerOp, perOp)}, sc.processorValues(r)...)
	case workload.Turns:
		all := []benchfmt.Value{of(r.PerOp, perOp), of(waited(r, 0.5), p50), of(waited(r, 0.99), p99)}
		return append(append(all, sc.processorValues(r)...), sc.tripValues(r)...)
	case workload.Handoff:
		return sc.handoffValues(r)
	case workload.Recall:
		waits := r.Handoff.Latencies
		return []benchfmt.Value{
			of(stats.Quantile(waits, 0.5), p50), of(stats.Quantile(waits, 0.99), p99),
			of(float64(len(waits)), "handoffs"),
		}
	case workload.Herd:
		h := r.Herd
		return []benchfmt.Value{
			of(h.Total, perHerd), of(h.Total/float64(sc.grants()), perGrant), of(h.Commands, commandsAGrant),
			of(h.After, "after-release/grant"), of(float64(h.Unserved), unserved),
			of(h.ServerCPU, "server-cpu-ns/grant"),
		}
	case workload.Keep:
		k := r.Keep
		return []benchfmt.Value{
			of(k.Commands, commandsASecond), of(k.Bytes, bytesHeld), of(k.Goroutines, goroutinesHeld),
			of(float64(k.Lost), lostHolds), of(float64(k.Missing), missing), of(k.CPU, clientShare),
			of(k.ServerCPU, serverShare), of(k.ServerMem, serverBytes),
		}
	default:
		return sc.contendValues(r)
	}
}

func (sc *scenario) contendValues(r *workload.Result) []benchfmt.Value {
	all := []benchfmt.Value{
		of(r.Rate, rate), of(waited(r, 0.5), p50), of(waited(r, 0.99), p99),
		of(waited(r, 1), "longest-ns"), of(stats.Jain(r.Shares), jainIndex),
		of(stats.Worst(r.Shares), worstShare),
	}
	all = append(all, sc.processorValues(r)...)
	if sc.redis {
		all = append(all, of(r.Commands, commands), of(r.Scripts, scriptTime))
	}
	if sc.served() {
		all = append(all, of(float64(r.Cut), "hung"))
	}
	return all
}

func (sc *scenario) handoffValues(r *workload.Result) []benchfmt.Value {
	h := r.Handoff
	half := stats.Quantile(h.Latencies, 0.5)
	all := []benchfmt.Value{
		of(half, p50), of(stats.Quantile(h.Latencies, 0.99), p99),
		of(float64(len(h.Latencies)), "handoffs"), of(float64(h.Hung), "hung"), of(h.Quiet, waitingCommands),
		of(h.Pings, "pings/s"),
	}
	if sc.served() {
		all = append(all, of(h.ServerCPU, "server-cpu-ns/handoff"))
	}
	if sc.far > 0 {
		all = append(all, of(r.RoundTrip, "round-trip-ns"), of(half/r.RoundTrip, inTrips))
	}
	return all
}

// processorValues are of the clients and of the server, if there is one.
func (sc *scenario) processorValues(r *workload.Result) []benchfmt.Value {
	if !sc.served() {
		return []benchfmt.Value{of(r.CPU, clientCPU)}
	}
	return []benchfmt.Value{of(r.CPU, clientCPU), of(r.ServerCPU, serverCPU)}
}

// tripValues are the round trips that were counted, or with a server far away those that the time comes to.
func (sc *scenario) tripValues(r *workload.Result) []benchfmt.Value {
	if sc.far > 0 {
		return []benchfmt.Value{of(r.RoundTrip, "round-trip-ns"), of(r.PerOp/r.RoundTrip, inTrips)}
	}
	return []benchfmt.Value{of(r.RoundTrips, roundTrips)}
}

// waited returns the wait, in nanoseconds, that a part q of the acquisitions does not exceed.
func waited(r *workload.Result, q float64) float64 { return float64(r.Wait.Quantile(q)) }

// of keeps six digits behind the point: no measurement has more.
func of(x float64, unit string) benchfmt.Value {
	const digits = 1e6
	return benchfmt.Value{Value: math.Round(x*digits) / digits, Unit: unit}
}
