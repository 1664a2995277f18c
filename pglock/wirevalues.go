// Go values in PostgreSQL's binary format and back; talk.go's callers use them for parameters and columns. Values are
// binary both ways, which saves the server and the client the parsing of text.

package pglock

import (
	"encoding/binary"
	"strconv"
	"time"
)

// Values travel in PostgreSQL's binary format, both ways.

// epoch is where PostgreSQL counts microseconds from.
var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// binaryFormat says of all parameters and columns that they are binary. One entry stands for all.
var binaryFormat = []int16{1}

func int8Value(n int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) }
func int4Value(n int32) []byte { return binary.BigEndian.AppendUint32(nil, uint32(n)) }

// textValue is a text or bytea, which is never NULL: an empty one is an empty slice and not nil.
func textValue(s string) []byte { return append(make([]byte, 0, len(s)), s...) }

// int64Of, int32Of and boolOf return zero for NULL and for a column of another size.
func int64Of(b []byte) int64 {
	if len(b) != 8 {
		return 0
	}
	return int64(binary.BigEndian.Uint64(b))
}

func int32Of(b []byte) int32 {
	if len(b) != 4 {
		return 0
	}
	return int32(binary.BigEndian.Uint32(b))
}

func boolOf(b []byte) bool { return len(b) == 1 && b[0] == 1 }

// timeOf is the zero time for NULL.
func timeOf(b []byte) time.Time {
	if len(b) != 8 {
		return time.Time{}
	}
	us := int64Of(b)
	// Seconds and microseconds are added apart, because the microseconds of a far year do not fit into a Duration of
	// nanoseconds.
	return epoch.Add(time.Duration(us/1e6) * time.Second).Add(time.Duration(us%1e6) * time.Microsecond).Local()
}

// int4Array is a value of type int[] with one dimension.
func int4Array(all []int32) []byte {
	const int4OID = 23
	b := binary.BigEndian.AppendUint32(nil, 1) // dimensions
	b = binary.BigEndian.AppendUint32(b, 0)    // no NULLs
	b = binary.BigEndian.AppendUint32(b, int4OID)
	b = binary.BigEndian.AppendUint32(b, uint32(len(all)))
	b = binary.BigEndian.AppendUint32(b, 1) // first index
	for _, n := range all {
		b = binary.BigEndian.AppendUint32(b, 4)
		b = binary.BigEndian.AppendUint32(b, uint32(n))
	}
	return b
}

func pidText(b []byte) string { return strconv.Itoa(int(int32Of(b))) }
