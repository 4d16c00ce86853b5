package faultserver

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// logLine is a line of a container's log.
type logLine struct {
	at   time.Time
	text string
}

// Log adds a line to the log of a container of every Pod.
func (s *Server) Log(container string, at time.Time, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.logs == nil {
		s.logs = map[string][]logLine{}
	}
	s.logs[container] = append(s.logs[container], logLine{at, text})
	s.touch()
}

// RotateLog begins a new file for the log of a container: whoever asks from now on
// gets nothing of what was said before.
func (s *Server) RotateLog(container string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.logFrom == nil {
		s.logFrom = map[string]int{}
	}
	s.logFrom[container] = len(s.logs[container])
}

// CutLog breaks off the answers to requests for a log, each after n lines, as
// often as times says.
func (s *Server) CutLog(times, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.logCuts, s.logCutAfter = times, n
}

// FollowsLog says how many requests are following a container's log right now.
func (s *Server) FollowsLog(container string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.logFollowers[container]
}

// log answers as a kubelet does: each line is judged by its own time.
func (s *Server) log(w http.ResponseWriter, r *http.Request, asked Request) {
	query := r.URL.Query()
	container := query.Get("container")
	follow := query.Get("follow") == "true"
	var since time.Time
	if text := query.Get("sinceTime"); text != "" {
		at, err := time.Parse(time.RFC3339, text)
		if err != nil {
			fail(w, apierrors.NewBadRequest(err.Error()))
			return
		}
		since = at
	}
	s.mu.Lock()
	there := s.store.index(asked.Namespace, asked.Name) >= 0
	next := s.logFrom[container]
	if tail, err := strconv.Atoi(query.Get("tailLines")); err == nil {
		next = max(len(s.logs[container])-tail, next)
	}
	cutAfter := -1
	if s.logCuts > 0 {
		s.logCuts--
		cutAfter = s.logCutAfter
	}
	s.mu.Unlock()
	if !there {
		fail(w, apierrors.NewNotFound(corev1.Resource("pods"), asked.Name))
		return
	}
	if follow {
		defer s.following(r, container)()
	}
	flusher, _ := w.(http.Flusher)
	flusher.Flush()
	for sent := 0; ; next++ {
		line, ok := s.nextLine(r, container, next, follow)
		if !ok {
			return
		}
		if line.at.Before(since) {
			continue
		}
		if sent == cutAfter {
			panic(http.ErrAbortHandler)
		}
		sent++
		if _, err := fmt.Fprintf(w, "%s %s\n", line.at.UTC().Format("2006-01-02T15:04:05.000000000Z"), line.text); err != nil {
			return
		}
		flusher.Flush()
	}
}

// following counts a request that follows a log, until what it gives is called;
// and wakes whoever waits for it when the client leaves.
func (s *Server) following(r *http.Request, container string) (end func()) {
	add := func(n int) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.logFollowers == nil {
			s.logFollowers = map[string]int{}
		}
		s.logFollowers[container] += n
		s.touch()
	}
	add(1)
	ended := make(chan struct{})
	go func() {
		select {
		case <-r.Context().Done():
		case <-s.stop:
		case <-ended:
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.changed.Broadcast()
	}()
	return func() {
		close(ended)
		add(-1)
	}
}

// nextLine waits for a line of a log; ok is false when there is none, or when
// the client or the Server has gone.
func (s *Server) nextLine(r *http.Request, container string, n int, follow bool) (line logLine, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		if n < len(s.logs[container]) {
			return s.logs[container][n], true
		}
		if !follow {
			return logLine{}, false
		}
		select {
		case <-r.Context().Done():
			return logLine{}, false
		case <-s.stop:
			return logLine{}, false
		default:
		}
		s.changed.Wait()
	}
}
