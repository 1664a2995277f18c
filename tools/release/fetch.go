package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
)

// fetch has Go take each module from the tags, as everybody will who has no proxy, and compares what it gets with the
// proxy that all proofs use. go.sum files with other sums would refuse every installation.
func (r *release) fetch(ctx context.Context) error {
	fromProxy, err := r.user(ctx, "proxied")
	if err != nil {
		return err
	}
	fromTags, err := r.user(ctx, "fetched")
	if err != nil {
		return err
	}
	fromTags.env = append(slices.Clone(fromTags.env),
		"GOPROXY=direct",
		"GOVCS=*:all",
		"GIT_CONFIG_COUNT=1",
		"GIT_CONFIG_KEY_0=url.file://"+r.repository()+".insteadOf",
		"GIT_CONFIG_VALUE_0=https://"+r.modules[0].path,
	)
	for _, m := range r.modules {
		want, err := m.sums(ctx, fromProxy, r.version)
		if err != nil {
			return err
		}
		got, err := m.sums(ctx, fromTags, r.version)
		if err != nil {
			return err
		}
		if got != want {
			return fmt.Errorf("%s: go gets %+v from the tags and %+v from the proxy", m.path, got, want)
		}
	}
	return nil
}

// sums are those that go.sum has of a version.
type sums struct{ Sum, GoModSum string }

// sums has Go download the module and returns its sums.
func (m *published) sums(ctx context.Context, user command, version string) (got sums, _ error) {
	said, err := user.output(ctx, "go", "mod", "download", "-json", m.path+"@"+version)
	if err != nil {
		return got, err
	}
	return got, json.Unmarshal([]byte(said), &got)
}
