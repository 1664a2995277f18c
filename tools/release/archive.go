package main

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
)

// archive puts a binary and the license into a .tar.gz whose bytes depend on nothing else: no owner, and the time of
// the commit.
func (r *release) archive(name, binary string) error {
	out, err := os.Create(filepath.Join(r.to, name))
	if err != nil {
		return err
	}
	defer func() { _ = out.Close() }()
	zipped, err := gzip.NewWriterLevel(out, gzip.BestCompression)
	if err != nil {
		return err
	}
	files := tar.NewWriter(zipped)
	for _, f := range []struct {
		from, name string
		mode       int64
	}{
		{binary, "interlock", 0o755},
		{filepath.Join(r.repository(), "LICENSE"), "LICENSE", 0o644},
	} {
		text, err := os.ReadFile(f.from)
		if err != nil {
			return err
		}
		head := &tar.Header{
			Name: f.name, Mode: f.mode, Size: int64(len(text)), ModTime: r.when,
			Format: tar.FormatPAX, Typeflag: tar.TypeReg,
		}
		if err := files.WriteHeader(head); err != nil {
			return err
		}
		if _, err := files.Write(text); err != nil {
			return err
		}
	}
	if err := files.Close(); err != nil {
		return err
	}
	if err := zipped.Close(); err != nil {
		return err
	}
	return out.Close()
}

// part is a module in a list in the form of CycloneDX 1.6 (https://cyclonedx.org/docs/1.6/json/).
type part struct {
	Type    string `json:"type"`
	Name    string `json:"name"`
	Version string `json:"version"`
	PURL    string `json:"purl"` // https://github.com/package-url/purl-spec, type golang
}

func partOf(kind string, m *debug.Module) part {
	return part{kind, m.Path, m.Version, "pkg:golang/" + m.Path + "@" + m.Version}
}

// listParts writes what a binary is made of, as the binary itself says: its SBOM.
func (r *release) listParts(name, binary string) error {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return err
	}
	parts := []part{{"platform", "std", info.GoVersion, "pkg:golang/std@" + strings.TrimPrefix(info.GoVersion, "go")}}
	for _, m := range info.Deps {
		parts = append(parts, partOf("library", m))
	}
	type about struct {
		Timestamp string `json:"timestamp"`
		Component part   `json:"component"`
	}
	text, err := json.MarshalIndent(struct {
		Format     string `json:"bomFormat"`
		Spec       string `json:"specVersion"`
		Version    int    `json:"version"`
		About      about  `json:"metadata"`
		Components []part `json:"components"`
	}{
		"CycloneDX", "1.6", 1, about{r.when.Format("2006-01-02T15:04:05Z"), partOf("application", &info.Main)}, parts,
	}, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.to, name), append(text, '\n'), 0o644)
}

// writeSums writes the checksums of all files that are for users, in the form that sha256sum -c reads.
func (r *release) writeSums(context.Context) error {
	entries, err := os.ReadDir(r.to)
	if err != nil {
		return err
	}
	var lines []string
	for _, e := range entries {
		if e.IsDir() {
			continue
		}
		text, err := os.ReadFile(filepath.Join(r.to, e.Name()))
		if err != nil {
			return err
		}
		lines = append(lines, fmt.Sprintf("%x  %s\n", sha256.Sum256(text), e.Name()))
	}
	slices.SortFunc(lines, func(a, b string) int { return strings.Compare(a[64:], b[64:]) })
	return os.WriteFile(filepath.Join(r.to, "SHA256SUMS"), []byte(strings.Join(lines, "")), 0o644)
}
