package webguard

import (
	"bufio"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
)

// minToken is how many bytes a token has at least.
const minToken = 16

// Token is a secret that lets a visitor in, and the visitor's name.
type Token struct {
	Name   string // shown in audits and as a label; never empty, and each occurs once
	Secret string // 16 bytes at least
}

// ReadTokens reads a file with a line name:token for each visitor. Empty lines and lines that begin with # are skipped.
// A token has 16 bytes at least, and each name occurs once. A file that anybody but its owner may read is refused.
// Errors never show a token.
func ReadTokens(path string) ([]Token, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	// Windows has no such modes: every file that can be written seems to be everybody's.
	if mode := info.Mode().Perm(); mode&0o077 != 0 && runtime.GOOS != "windows" {
		return nil, fmt.Errorf("%s: others may read or write it (mode %04o): chmod 600 %s", path, mode, path)
	}
	tokens, err := parseTokens(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return tokens, nil
}

func parseTokens(r io.Reader) ([]Token, error) {
	var tokens []Token
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, secret, ok := strings.Cut(line, ":")
		if !ok {
			return nil, fmt.Errorf("line %d is not name:token", n)
		}
		tokens = append(tokens, Token{strings.TrimSpace(name), strings.TrimSpace(secret)})
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(tokens) == 0 {
		return nil, errors.New("there is no token in it: write lines name:token")
	}
	return tokens, checkTokens(tokens)
}

// checkTokens refuses what would let in the wrong one.
func checkTokens(tokens []Token) error {
	seen := make(map[string]bool)
	for _, t := range tokens {
		switch {
		case t.Name == "":
			return errors.New("a token has no name")
		case len(t.Secret) < minToken:
			return fmt.Errorf("the token of %q is shorter than %d bytes", t.Name, minToken)
		case seen[t.Name]:
			return fmt.Errorf("the name %q occurs twice", t.Name)
		case seen[":"+t.Secret]:
			return fmt.Errorf("%q has the token of another name", t.Name)
		}
		seen[t.Name], seen[":"+t.Secret] = true, true
	}
	return nil
}

// digest is what tokens are compared by: all have the same length, so that comparing tells nothing about them.
type digest [sha256.Size]byte

func digestOf(secret string) digest { return sha256.Sum256([]byte(secret)) }

// tokenDigest is a token as it is compared.
type tokenDigest struct {
	name   string
	digest digest
}

// nameBy finds whose secret it is, or returns "". A user that is not "" must be that name. It takes as long for a wrong
// one as for a right one.
func (g *Guard) nameBy(user, secret string) (name string) {
	given := digestOf(secret)
	for i := range g.tokens {
		if subtle.ConstantTimeCompare(g.tokens[i].digest[:], given[:]) == 1 {
			name = g.tokens[i].name
		}
	}
	if user != "" && user != name {
		return ""
	}
	return name
}
