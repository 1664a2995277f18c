package filelock

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math"
	"time"
	"unicode/utf8"
)

// The record: what a lock file holds. It says who had the lock last, and with which tokens. recordfile.go reads and
// writes it.

// The record is what a lock file holds: who had the lock last, and with which tokens. It stays when the lock is free,
// because the next token grows from it. It is written in one pwrite at offset 0 and lies within the file's first block.
// So once a record was written, a full disk does not prevent the next one.
//
//	 0  8  magic and version
//	 8  4  CRC-32C of everything behind it
//	12  4  length of the record
//	16  8  first token of the block
//	24  8  last token of the block
//	32  8  since, in microseconds of Unix time
//	40  4  process id
//	44  8  lengths of name, owner, client, label
//	52     name, owner, client, label
const (
	recordMagic  = "interlk\x01"
	recordHeader = 52

	// maxRecord is the header, a name of 512 bytes and three texts of maxText: together they fit.
	maxRecord = 2048
	maxName   = 512
	maxText   = (maxRecord - recordHeader - maxName) / 3

	// maxToken is the last token: tokens fit a signed 64-bit column.
	maxToken = math.MaxInt64
)

var (
	errNoRecord  = errors.New("the file has no record yet")
	errBadRecord = errors.New("the file's record is damaged or foreign")

	castagnoli = crc32.MakeTable(crc32.Castagnoli)
)

// record is one hold: the latest of a mutex, or that of a slot.
type record struct {
	First, Last                uint64
	Since                      time.Time
	PID                        uint32
	Name, Owner, Client, Label string
}

// appendTo appends the record's encoding to b. It cuts texts for operators that are too long.
func (r *record) appendTo(b []byte) []byte {
	start := len(b)
	b = append(b, recordMagic...)
	b = append(b, make([]byte, recordHeader-len(recordMagic))...)
	texts := [4]string{r.Name, trim(r.Owner), trim(r.Client), trim(r.Label)}
	for i, s := range texts {
		binary.LittleEndian.PutUint16(b[start+44+2*i:], uint16(len(s)))
		b = append(b, s...)
	}
	p := b[start:]
	binary.LittleEndian.PutUint32(p[12:], uint32(len(p)))
	binary.LittleEndian.PutUint64(p[16:], r.First)
	binary.LittleEndian.PutUint64(p[24:], r.Last)
	binary.LittleEndian.PutUint64(p[32:], uint64(r.Since.UnixMicro()))
	binary.LittleEndian.PutUint32(p[40:], r.PID)
	binary.LittleEndian.PutUint32(p[8:], crc32.Checksum(p[12:], castagnoli))
	return b
}

// decodeRecord reads the record at the beginning of a file. It returns errNoRecord for an empty file and errBadRecord
// for anything that appendTo did not write. What lies behind the record, of an earlier and longer one, does not matter.
func decodeRecord(p []byte) (record, error) {
	p, err := checkedRecord(p)
	if err != nil {
		return record{}, err
	}
	r := record{
		First: binary.LittleEndian.Uint64(p[16:]),
		Last:  lastToken(p),
		Since: time.UnixMicro(int64(binary.LittleEndian.Uint64(p[32:]))),
		PID:   binary.LittleEndian.Uint32(p[40:]),
	}
	texts := p[recordHeader:]
	for i, s := range []*string{&r.Name, &r.Owner, &r.Client, &r.Label} {
		size := textSize(p, i)
		*s, texts = string(texts[:size]), texts[size:]
	}
	return r, nil
}

// checkedRecord returns the bytes of the record that p begins with, once they are known to be sound.
func checkedRecord(p []byte) ([]byte, error) {
	if len(p) == 0 {
		return nil, errNoRecord
	}
	if len(p) < recordHeader || string(p[:8]) != recordMagic {
		return nil, errBadRecord
	}
	n := binary.LittleEndian.Uint32(p[12:])
	if n < recordHeader || n > maxRecord || int(n) > len(p) {
		return nil, errBadRecord
	}
	p = p[:n]
	if crc32.Checksum(p[12:], castagnoli) != binary.LittleEndian.Uint32(p[8:]) {
		return nil, errBadRecord
	}
	size := recordHeader
	for i := range 4 {
		size += textSize(p, i)
	}
	first, last := binary.LittleEndian.Uint64(p[16:]), lastToken(p)
	if size != len(p) || first == 0 || first > last || last > maxToken {
		return nil, errBadRecord
	}
	return p, nil
}

func lastToken(p []byte) uint64    { return binary.LittleEndian.Uint64(p[24:]) }
func textSize(p []byte, i int) int { return int(binary.LittleEndian.Uint16(p[44+2*i:])) }

// trim cuts s to maxText bytes, at a character's end.
func trim(s string) string {
	if len(s) <= maxText {
		return s
	}
	n := maxText
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
