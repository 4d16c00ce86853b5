package registry

import (
	"fmt"
	"net/http"
	"time"
)

// slowWriter sends a body in small parts with pauses between them, at the
// speed that the faults have at that moment: a pull that is under way becomes
// slow, and fast again, with them.
type slowWriter struct {
	http.ResponseWriter
	request *http.Request
	faults  *faults
}

// parts is how many parts a second's bytes are sent in.
const parts = 10

func (w *slowWriter) Write(p []byte) (int, error) {
	sent := 0
	for sent < len(p) {
		speed := w.faults.concerning(w.request).BytesPerSecond
		if speed == 0 {
			n, err := w.ResponseWriter.Write(p[sent:])
			return sent + n, err
		}
		part := min(max(speed/parts, 1), int64(len(p)-sent))
		n, err := w.ResponseWriter.Write(p[sent : sent+int(part)])
		sent += n
		if err != nil {
			return sent, err
		}
		// What the client is to wait for must be on its way by then. A
		// writer that cannot flush has no client.
		_ = http.NewResponseController(w.ResponseWriter).Flush()
		if pause := time.Duration(n) * time.Second / time.Duration(speed); !w.faults.sleep(w.request, pause) {
			return sent, fmt.Errorf("send slowly: %w", w.request.Context().Err())
		}
	}
	return sent, nil
}

// Unwrap lets http.ResponseController reach the real writer.
func (w *slowWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
