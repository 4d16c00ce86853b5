package faultserver

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// Request is one request as the apiserver's audit log would show it.
type Request struct {
	// Verb is get, list, watch, create, patch or delete.
	Verb string
	// Resource is pods, pods/exec, pods/log, secrets or nodes.
	Resource  string
	Namespace string
	Name      string
	// Query is the query as it came.
	Query string
	// Body is the request's body, "" for exec.
	Body string
}

// Requests are requests in the order of their arrival.
type Requests []Request

// Count is how many requests of a verb and a resource there were; "" means
// any.
func (r Requests) Count(verb, resource string) int {
	return len(r.Of(verb, resource))
}

// Of are the requests of a verb and a resource; "" means any.
func (r Requests) Of(verb, resource string) Requests {
	return slices.DeleteFunc(slices.Clone(r), func(one Request) bool {
		return !matches(verb, one.Verb) || !matches(resource, one.Resource)
	})
}

// String is a line for each request, for the messages of failed tests.
func (r Requests) String() string {
	var b strings.Builder
	for _, one := range r {
		fmt.Fprintf(&b, "%s %s %s/%s %s\n", one.Verb, one.Resource, one.Namespace, one.Name, one.Query)
	}
	return b.String()
}

func matches(wanted, got string) bool { return wanted == "" || wanted == got }

// Executed is what is kept of an exec.
type Executed struct {
	Pod, Container string
	Args           []string
	// Stdin is what the command has read so far.
	Stdin []byte
}

// record is what was asked of the Server. The Server's lock guards it.
type record struct {
	generation int
	requests   Requests
	execs      []*Exec
	refused    int
	watches    int
	running    int
}

// Requests are all requests so far, answered or not.
func (s *Server) Requests() Requests {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.record.requests)
}

// Refused is how many connections were turned away.
func (s *Server) Refused() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.record.refused
}

// Execs are all commands that were started, in the order of their start. A
// command counts as started once its streams are open.
func (s *Server) Execs() []Executed {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]Executed, 0, len(s.record.execs))
	for _, e := range s.record.execs {
		all = append(all, Executed{Pod: e.Pod, Container: e.Container, Args: e.Args, Stdin: slices.Clone(e.stdin)})
	}
	return all
}

// note records a request.
func (s *Server) note(r Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.record.requests = append(s.record.requests, r)
	s.touch()
}

// parse reads what a request is about; ok is false for what the Server does
// not know.
func parse(r *http.Request) (parsed Request, ok bool) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	if len(parts) < 3 || parts[0] != "api" || parts[1] != "v1" {
		return parseReview(r)
	}
	parts = parts[2:]
	if parts[0] == "namespaces" && len(parts) >= 3 {
		parsed.Namespace = parts[1]
		parts = parts[2:]
	}
	parsed.Resource = parts[0]
	if len(parts) > 1 {
		parsed.Name = parts[1]
	}
	if len(parts) > 2 {
		parsed.Resource += "/" + parts[2]
	}
	parsed.Query = r.URL.RawQuery
	switch {
	case r.Method == http.MethodPost:
		parsed.Verb = "create"
	case r.Method == http.MethodPatch:
		parsed.Verb = "patch"
	case r.Method == http.MethodDelete:
		parsed.Verb = "delete"
	case r.URL.Query().Get("watch") != "":
		parsed.Verb = "watch"
	case parsed.Name == "":
		parsed.Verb = "list"
	default:
		parsed.Verb = "get"
	}
	return parsed, slices.Contains([]string{"pods", "pods/exec", "pods/log", "secrets", "nodes", "events"}, parsed.Resource)
}
