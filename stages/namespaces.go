package stages

import (
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/socialweb-computer/tenant-executor/executor/settings"
)

// namespaces are where the Pods of a runner's jobs are.
type namespaces struct {
	known []string
	// more is whether there may be some in others: jobs choose their
	// namespaces.
	more bool
}

// namespacesOf are those of the operator's settings and of what a job has made
// of them.
func namespacesOf(operators, jobs settings.Kubernetes) namespaces {
	known := []string{operators.Namespace}
	if jobs.Namespace != operators.Namespace {
		known = append(known, jobs.Namespace)
	}
	return namespaces{known: known, more: operators.NamespaceOverwriteAllowed != ""}
}

// listAcross lists in every namespace where something may be. Where the driver
// may not look into all of them, it looks into those it knows.
func listAcross[T any](n namespaces, list func(namespace string) ([]T, error)) ([]T, error) {
	if n.more {
		found, err := list(metav1.NamespaceAll)
		if !apierrors.IsForbidden(err) {
			return found, err
		}
	}
	var all []T
	for _, namespace := range n.known {
		found, err := list(namespace)
		if err != nil {
			return nil, err
		}
		all = slices.Concat(all, found)
	}
	return all, nil
}
