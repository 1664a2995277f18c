package main

import (
	"context"
	"slices"
	"testing"
)

// Each benchmark runs rounds of a scenario that are far too short to learn much from: "make bench-check" shows that
// every one still works. The tables come from "go run .".

func BenchmarkFiles(b *testing.B) { benchmark(b, fileScenarios()) }

func BenchmarkRedis(b *testing.B) { benchmark(b, redisScenarios()) }

func BenchmarkClient(b *testing.B) { benchmark(b, clientScenarios()) }

func BenchmarkRetain(b *testing.B) { benchmark(b, retainScenarios()) }

func BenchmarkDistance(b *testing.B) { benchmark(b, onePerFamily(distanceScenarios())) }

func BenchmarkGrowth(b *testing.B) { benchmark(b, onePerFamily(growthScenarios())) }

func benchmark(b *testing.B, all []scenario) {
	b.Helper()
	for _, sc := range all {
		b.Run(sc.name, func(b *testing.B) {
			s := quick(b, b.N)
			if sc.redis {
				s.redis = startRedis(b)
			}
			got, err := measure(context.Background(), small(sc), s, func(int) {})
			if err != nil {
				b.Fatal(err)
			}
			for _, p := range sc.peers {
				for _, unit := range slices.Concat(sc.shows...) {
					b.ReportMetric(got.median(sc.name, p, unit), p+":"+unit)
				}
			}
		})
	}
}
