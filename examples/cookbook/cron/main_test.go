package main

import (
	"testing"

	"github.com/interlock-go/interlock/examples/internal/recipe/recipetest"
)

func TestCron(t *testing.T) {
	recipetest.Run(t, run, map[string]int{" ran the report": 1, "skipped it": 2})
}
