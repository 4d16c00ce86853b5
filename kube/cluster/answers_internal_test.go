package cluster

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/socialweb-computer/tenant-executor/kube/bounded"
)

// zeros is a body of a length.
type zeros int

func (z *zeros) Read(p []byte) (int, error) {
	n := min(len(p), int(*z))
	if *z -= zeros(n); n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

func (z *zeros) Close() error { return nil }

// An answer has an end, as its kind may have; what is read bit by bit has not.
func TestBoundAnswers(t *testing.T) {
	for _, test := range []struct {
		name       string
		path       string
		code       int
		sent, want int
		long       bool
	}{
		{"the longest list", "/api/v1/pods", 200, longestAnswer, longestAnswer, false},
		{"a longer one", "/api/v1/pods", 200, longestAnswer + 1, longestAnswer, true},
		{"the longest refusal", "/api/v1/pods/x/log", 403, longestRefusal, longestRefusal, false},
		{"a longer one is cut", "/api/v1/pods/x/log", 500, longestRefusal + 1, longestRefusal, false},
		{"a log", "/api/v1/pods/x/log?follow=true", 200, longestAnswer + 1, longestAnswer + 1, false},
		{"a watch", "/api/v1/pods?watch=true", 200, longestAnswer + 1, longestAnswer + 1, false},
		{"an upgrade", "/api/v1/pods/x/exec", 101, longestAnswer + 1, longestAnswer + 1, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			server := roundTripper(func(*http.Request) (*http.Response, error) {
				body := zeros(test.sent)
				return &http.Response{StatusCode: test.code, Body: &body}, nil
			})
			ask, err := http.NewRequest(http.MethodGet, "https://127.0.0.1"+test.path, strings.NewReader(""))
			if err != nil {
				t.Fatal(err)
			}
			response, err := boundAnswers(server).RoundTrip(ask)
			if err != nil {
				t.Fatal(err)
			}
			n, err := io.Copy(io.Discard, response.Body)
			if long := new(bounded.TooLongError); int(n) != test.want || errors.As(err, &long) != test.long || !test.long && err != nil {
				t.Errorf("%d bytes, %v", n, err)
			}
		})
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
