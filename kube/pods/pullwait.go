package pods

import "time"

// final is the first problem that keeps the Pod from running for good, nil if
// there is none.
func (s State) final() *Problem {
	for i, p := range s.Problems {
		final := p.Kind.pullFinal() || p.Kind == ImagePlatform || p.Kind == NotStartable
		if final && (!p.Foreign || pulling(p.Reason)) {
			return &s.Problems[i]
		}
	}
	return nil
}

// Words are the kubelet's words for the problem.
func (p Problem) Words() string { return p.words("") }

// words has something more behind the reason.
func (p Problem) words(more string) string {
	if !pulling(p.Reason) {
		return joinReason(p.Reason+more, p.Message)
	}
	reason, message := pullReason(p.Reason, p.Message)
	return joinReason(reason+more, message)
}

// pulls keeps since when pulls have failed. Its error is that of one that has
// failed for as long as it may.
func (w *waiting) pulls(state State) error {
	if w.budgets.Pull == nil {
		return nil
	}
	now := w.clock.Now()
	failing := map[string]time.Time{}
	var due time.Time
	for _, p := range state.Problems {
		if !p.Kind.pullPassing() {
			continue
		}
		since, known := w.failing[p.Container]
		if !known {
			since = now
		}
		failing[p.Container] = since
		end := since.Add(w.budgets.Pull(p.Container))
		if !end.After(now) {
			return &ContainerError{Problem: p, Node: state.Node, After: now.Sub(since)}
		}
		if due.IsZero() || end.Before(due) {
			due = end
		}
	}
	w.failing = failing
	switch {
	case due.IsZero():
		w.pull = nil
	case due != w.due:
		w.pull = w.clock.After(due.Sub(now))
	}
	w.due = due
	return nil
}

// Cause is the error with the kubelet's words alone.
func (e *ContainerError) Cause() error { return &wordsError{e} }

// wordsError is a ContainerError of which the rest has been said.
type wordsError struct{ of *ContainerError }

func (e *wordsError) Error() string { return e.of.Problem.Words() }
func (e *wordsError) Unwrap() error { return e.of }
