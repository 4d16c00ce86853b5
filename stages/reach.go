package stages

import (
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/socialweb-computer/tenant-executor/executor/failure"
	"github.com/socialweb-computer/tenant-executor/executor/settings"
	"github.com/socialweb-computer/tenant-executor/stages/state"
)

// reach is where the Pods of a runner's jobs may be: in which namespaces.
type reach struct {
	known []string
	// more is whether there may be some in others: jobs choose their
	// namespaces.
	more bool
	// perJob is whether each job has a namespace of its own.
	perJob bool
	// narrowed is whether only the known ones could be looked into, although
	// there may be more.
	narrowed bool
}

// reachOf are those of the operator's settings and of what a job has made
// of them.
func reachOf(operators, jobs settings.Kubernetes) *reach {
	known := []string{operators.Namespace}
	if jobs.Namespace != operators.Namespace {
		known = append(known, jobs.Namespace)
	}
	return &reach{known: known, more: operators.NamespacePerJob || operators.NamespaceOverwriteAllowed != "", perJob: operators.NamespacePerJob}
}

// chosenNote begins the names of state files that remember which namespaces
// jobs have chosen, for a driver that may not look into all of them. They hold
// the day.
const chosenNote = "namespace-"

// chosenFor is how long a namespace is remembered after the last job in it: by
// then nothing that was left there is of interest but to a person.
const chosenFor = 30 * 24 * time.Hour

// noteNamespace remembers the namespace that the job has chosen. One that
// cannot be remembered is looked into only by stages of jobs that choose it.
func (d *Driver) noteNamespace() {
	if d.choseNamespace() {
		_ = d.state.WriteFile(chosenNote+d.settings.Kubernetes.Namespace, []byte(d.clock.Now().UTC().Format(time.DateOnly)))
	}
}

// choseNamespace says whether the namespace is of the job's choice.
func (d *Driver) choseNamespace() bool {
	chosen := d.asked.result.Settings.Namespace
	return chosen != d.asked.operators.Namespace && chosen == d.settings.Kubernetes.Namespace
}

// namespaceFailure is the failure of a job that has chosen a namespace which is
// not there, or in which the driver has no rights: another attempt would meet
// the same.
func (d *Driver) namespaceFailure(err error) error {
	return failure.Wrap(failure.Overwrite, err, "namespace %s, which the job asks for", d.settings.Kubernetes.Namespace)
}

// withChosen adds the namespaces that jobs have chosen of late.
func (n *reach) withChosen(folder *state.Folder, now time.Time) *reach {
	if !n.more {
		return n
	}
	notes, err := folder.List(chosenNote)
	if err != nil {
		return n
	}
	for _, note := range notes {
		data, err := folder.ReadFile(note)
		if err != nil {
			continue
		}
		if day, err := time.Parse(time.DateOnly, string(data)); err != nil || now.Sub(day) > chosenFor {
			_ = folder.Remove(note)
			continue
		}
		if name := strings.TrimPrefix(note, chosenNote); !slices.Contains(n.known, name) {
			n.known = append(n.known, name)
		}
	}
	return n
}

// listAcross lists in every namespace where something may be. Where the driver
// may not look into all of them, it looks into those it knows.
func listAcross[T any](n *reach, list func(namespace string) ([]T, error)) ([]T, error) {
	if n.more && !n.narrowed {
		found, err := list(metav1.NamespaceAll)
		if !apierrors.IsForbidden(err) {
			return found, err
		}
		n.narrowed = true
	}
	var all []T
	for i, namespace := range n.known {
		found, err := list(namespace)
		if i > 0 && apierrors.IsForbidden(err) {
			continue // a namespace of old that is none of the driver's any more
		}
		if err != nil {
			return nil, err
		}
		all = slices.Concat(all, found)
	}
	return all, nil
}
