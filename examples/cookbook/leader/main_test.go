package main

import (
	"testing"

	"github.com/interlock-go/interlock/examples/internal/recipe/recipetest"
)

func TestLeader(t *testing.T) {
	recipetest.Run(t, run, map[string]int{"node-1 leads": 1, "node-2 takes over": 1, "node-1 is refused": 1})
}
