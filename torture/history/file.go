package history

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
)

// suffix is that of the files of a history.
const suffix = ".history.jsonl"

// Writer appends to one file. Each event is with the kernel when Write returns, so kill -9 loses none.
type Writer struct {
	mu sync.Mutex // orders lines
	f  *os.File
}

// Create makes the file of a process in dir. A process that was killed and starts again has another name.
func Create(dir, name string) (*Writer, error) {
	f, err := os.OpenFile(filepath.Join(dir, name+suffix), os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	return &Writer{f: f}, nil
}

// Write records e, at the present instant unless it says one. It ends the process if it cannot: a history with a hole
// proves nothing.
func (w *Writer) Write(e Event) {
	if err := w.write(e); err != nil {
		fmt.Fprintln(os.Stderr, "torture: the history cannot be written:", err)
		os.Exit(3)
	}
}

func (w *Writer) write(e Event) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if e.At == 0 {
		e.At = Now() // under mu, so that a file is in the order of its instants
	}
	line, err := json.Marshal(e)
	if err == nil {
		_, err = w.f.Write(append(line, '\n'))
	}
	return err
}

// Close closes the file.
func (w *Writer) Close() error { return w.f.Close() }

// Load returns the events of all files in dir, in the order of their instants. The last line of a killed process may be
// torn: it is left out.
func Load(dir string) ([]Event, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*"+suffix))
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("there is no *%s in %s: name the folder of a run", suffix, dir)
	}
	var all []Event
	for _, path := range paths {
		events, err := LoadLines[Event](path)
		if err != nil {
			return nil, err
		}
		all = append(all, events...)
	}
	slices.SortStableFunc(all, func(a, b Event) int { return int(a.At - b.At) })
	return all, nil
}

// LoadLines reads a file of JSON lines.
func LoadLines[T any](path string) ([]T, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	var all []T
	in := bufio.NewReader(f)
	for n := 1; ; n++ {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		var one T
		if err := json.Unmarshal(line, &one); err != nil {
			return nil, fmt.Errorf("%s: line %d: %w", path, n, err)
		}
		all = append(all, one)
	}
}
