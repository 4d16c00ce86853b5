package cluster

import (
	"io"
	"net/http"
	"strings"

	"github.com/socialweb-computer/tenant-executor/kube/bounded"
)

// The most that is read of an answer, in bytes. The library reads answers whole:
// lists may be long, a refusal has a few lines. A kubelet's refusal to show a log
// comes through the apiserver as it is.
const (
	longestAnswer  = 64 << 20
	longestRefusal = bounded.Short
)

// boundAnswers bounds what the library reads of each answer. What is read bit by bit,
// logs and watches, has an end of its own.
func boundAnswers(next http.RoundTripper) http.RoundTripper { return boundedAnswers{next} }

type boundedAnswers struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b boundedAnswers) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := b.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	switch body := response.Body; {
	case response.StatusCode == http.StatusSwitchingProtocols:
	case response.StatusCode >= http.StatusMultipleChoices:
		response.Body = answer{io.LimitReader(body, longestRefusal), body}
	case strings.HasSuffix(r.URL.Path, "/log"), r.URL.Query().Get("watch") != "":
	default:
		response.Body = answer{&limited{from: body, left: longestAnswer}, body}
	}
	return response, nil
}

// answer is the bounded body of an answer.
type answer struct {
	io.Reader
	io.Closer
}

// limited ends with an error where an answer is longer than it may be.
type limited struct {
	from io.Reader
	left int
}

// Read implements io.Reader.
func (l *limited) Read(p []byte) (int, error) {
	n, err := l.from.Read(p[:min(len(p), l.left+1)])
	if n > l.left {
		n, l.left = l.left, 0
		return n, &bounded.TooLongError{Most: longestAnswer}
	}
	l.left -= n
	return n, err
}
