package main

import (
	"testing"

	"github.com/interlock-go/interlock/examples/internal/recipe/recipetest"
)

func TestCache(t *testing.T) {
	recipetest.Run(t, run, map[string]int{"20 requests, 1 load": 1})
}
