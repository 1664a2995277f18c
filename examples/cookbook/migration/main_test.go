package main

import (
	"testing"

	"github.com/interlock-go/interlock/examples/internal/recipe/recipetest"
)

func TestMigration(t *testing.T) {
	recipetest.Run(t, run, map[string]int{
		"create orders\n": 1, "add column paid\n": 1, "add index on paid\n": 1, " serves\n": 3,
	})
}
