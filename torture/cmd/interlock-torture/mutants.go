package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/interlock-go/interlock/torture/mutants"
)

// runMutants puts known bugs into copies of interlock, and wants each noticed.
func runMutants(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("mutants", flag.ContinueOnError)
	seeds := flags.Int("seeds", 5, "how often each check is made, each time with another seed")
	only := flags.String("only", "", "only these, separated by commas, as in M1,M16")
	beside := flags.Int("beside", 0, "how many programs at once; 0 is one for each processor")
	out := flags.String("o", "",
		"write the table into this file, with -only the rows of these; by default it is only printed")
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	if *seeds < 1 {
		return fmt.Errorf("%w: -seeds %d: at least one", errUsage, *seeds)
	}
	root, err := mutants.Root(".")
	if err != nil {
		return err
	}
	h := &mutants.Hunt{Root: root, Seeds: *seeds, Beside: *beside, Log: os.Stderr}
	if *only != "" {
		h.Only = strings.Split(*only, ",")
	}
	found, err := h.Run(ctx)
	if err != nil {
		return err
	}
	page := mutants.Page(found, *seeds)
	fmt.Println(page)
	if err := mutants.Err(found); err != nil {
		return fmt.Errorf("%w: %w", errBroken, err)
	}
	if *out == "" {
		return nil
	}
	if old, err := os.ReadFile(*out); err == nil && *only != "" {
		page = mutants.Merge(string(old), page)
	}
	return os.WriteFile(*out, []byte(page), 0o644)
}
