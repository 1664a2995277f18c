package terraformlock

import (
	"errors"
	"io"
	"net/http"
	"os"
	"strconv"
	"time"
)

// A state may have hundreds of megabytes, and a line may be slow. So what the http.Server gives a whole request or
// answer is not kept to while bytes move: each piece of a body has a deadline of its own.

const (
	defaultStall = 30 * time.Second // without a byte, after which a body is given up
	answerTime   = time.Minute      // for a short answer, after a body that took long
	piece        = 64 << 10         // is written within one deadline
)

// pieces is a body that has time as long as it comes.
type pieces struct {
	io.ReadCloser
	to    *http.ResponseController
	stall time.Duration
}

// Read reads what there is within the deadline. A writer that knows no deadlines has its own rules.
func (p *pieces) Read(to []byte) (int, error) {
	_ = p.to.SetReadDeadline(time.Now().Add(p.stall))
	return p.ReadCloser.Read(to)
}

// readAll reads a body of at most so many bytes, or answers for it.
func (b *Backend) readAll(w http.ResponseWriter, r *http.Request, most int64) ([]byte, bool) {
	to := http.NewResponseController(w)
	body, err := io.ReadAll(http.MaxBytesReader(w, &pieces{r.Body, to, b.stall}, most))
	_ = to.SetReadDeadline(time.Time{}) // net/http ends the request's context when it passes
	_ = to.SetWriteDeadline(time.Now().Add(answerTime))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		http.Error(w, "the body is too large for this server", http.StatusRequestEntityTooLarge)
	case errors.Is(err, os.ErrDeadlineExceeded):
		http.Error(w, "nothing more of the body came for "+b.stall.String(), http.StatusRequestTimeout)
	case err != nil:
		http.Error(w, "the body did not arrive whole", http.StatusBadRequest)
	}
	return body, err == nil
}

// writeAll answers with text, as long as the client takes it. With its length told the client notices when it is cut.
func (b *Backend) writeAll(w http.ResponseWriter, text []byte) {
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	to := http.NewResponseController(w)
	for len(text) > 0 {
		now := text[:min(len(text), piece)]
		_ = to.SetWriteDeadline(time.Now().Add(b.stall))
		if _, err := w.Write(now); err != nil {
			return
		}
		text = text[len(now):]
	}
}
