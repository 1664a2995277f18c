package filelock

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/driver"
)

// Lock names as file names, and back.

const (
	// maxFileName is NAME_MAX of the common file systems.
	maxFileName = 255

	// hashMark stands between a cut name and its hash. It is not a safe byte, so no plain encoding contains it.
	hashMark = "="

	hexDigits = "0123456789abcdef"
)

// fileName returns the name of key's lock file. Different keys have different files, also where the file system folds
// upper case or composes Unicode. Everything but a to z, 0 to 9, '.', '-' and '_' is percent-encoded. So is a leading
// dot, which would hide the file.
func fileName(key driver.Key) string {
	suffix := "." + string(key.Kind)
	stem := encode(key.Name)
	if len(stem)+len(suffix) <= maxFileName {
		return stem + suffix
	}
	sum := sha256.Sum256([]byte(key.Name))
	hash := hashMark + hex.EncodeToString(sum[:])
	return cut(stem, maxFileName-len(suffix)-len(hash)) + hash + suffix
}

// encode percent-encodes name.
func encode(name string) string {
	var b strings.Builder
	b.Grow(len(name) + len(name)/2)
	for i := range len(name) {
		c := name[i]
		if safe(c) && (c != '.' || i > 0) {
			b.WriteByte(c)
			continue
		}
		b.WriteByte('%')
		b.WriteByte(hexDigits[c>>4])
		b.WriteByte(hexDigits[c&15])
	}
	return b.String()
}

// safe reports whether c stands for itself.
func safe(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '.' || c == '-' || c == '_'
}

// cut shortens an encoding to at most n bytes, and leaves no half escape.
func cut(stem string, n int) string {
	stem = stem[:n]
	if i := strings.LastIndexByte(stem, '%'); i >= 0 && i > n-3 {
		stem = stem[:i]
	}
	return stem
}

// parsedName is what a file's name tells about its lock.
type parsedName struct {
	kind   driver.Kind
	name   string // the lock's name, or its beginning if hashed
	hashed bool   // the whole name is only in the record
}

// parseFileName is the inverse of fileName. It returns false for files that are no lock files.
func parseFileName(file string) (parsedName, bool) {
	at := strings.LastIndexByte(file, '.')
	if at < 0 || len(file) > maxFileName || !slices.Contains(kinds, driver.Kind(file[at+1:])) {
		return parsedName{}, false
	}
	stem, p := file[:at], parsedName{kind: driver.Kind(file[at+1:])}
	encoded, hash, hashed := strings.Cut(stem, hashMark)
	if hashed {
		sum, err := hex.DecodeString(hash)
		if err != nil || len(sum) != sha256.Size || hex.EncodeToString(sum) != hash {
			return parsedName{}, false
		}
		p.hashed = true
	}
	name, ok := decode(encoded)
	// Only what encode writes is a lock file: otherwise two files would answer to one name.
	if !ok || name == "" || encode(name) != encoded {
		return parsedName{}, false
	}
	p.name = name
	return p, true
}

// decode is the inverse of encode; it also accepts what encode would not write.
func decode(encoded string) (string, bool) {
	b := make([]byte, 0, len(encoded))
	for i := 0; i < len(encoded); i++ {
		if encoded[i] != '%' {
			b = append(b, encoded[i])
			continue
		}
		if i+2 >= len(encoded) {
			return "", false
		}
		c, err := hex.DecodeString(encoded[i+1 : i+3])
		if err != nil {
			return "", false
		}
		b = append(b, c[0])
		i += 2
	}
	return string(b), true
}
