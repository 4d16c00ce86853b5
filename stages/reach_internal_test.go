package stages

import (
	"errors"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/socialweb-computer/tenant-executor/executor/settings"
	"github.com/socialweb-computer/tenant-executor/stages/state"
)

func forbidden(namespace string) error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, namespace, errors.New("no such right"))
}

func TestListAcross(t *testing.T) {
	broken := errors.New("the cluster does not answer")
	for _, test := range []struct {
		name     string
		n        reach
		errs     map[string]error // by namespace, "" for all of them
		want     []string
		err      error
		narrowed bool
	}{
		{"one", reach{known: []string{"ci"}}, nil, []string{"ci"}, nil, false},
		{"all", reach{known: []string{"ci", "b"}, more: true}, nil, []string{""}, nil, false},
		{"the known ones", reach{known: []string{"ci", "b"}, more: true}, map[string]error{"": forbidden("")}, []string{"", "ci", "b"}, nil, true},
		{"one of old is gone", reach{known: []string{"ci", "b", "c"}, more: true}, map[string]error{"": forbidden(""), "b": forbidden("b")}, []string{"", "ci", "b", "c"}, nil, true},
		{"the configured one is refused", reach{known: []string{"ci"}}, map[string]error{"ci": forbidden("ci")}, []string{"ci"}, forbidden("ci"), false},
		{"no answer", reach{known: []string{"ci"}, more: true}, map[string]error{"": broken}, []string{""}, broken, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			var asked []string
			_, err := listAcross(&test.n, func(namespace string) ([]int, error) {
				asked = append(asked, namespace)
				return []int{1}, test.errs[namespace]
			})
			if !slices.Equal(asked, test.want) || (err == nil) != (test.err == nil) || test.n.narrowed != test.narrowed {
				t.Errorf("asked %q, narrowed %t, error %v; want %q, %t, %v", asked, test.n.narrowed, err, test.want, test.narrowed, test.err)
			}
		})
	}
}

func TestChosenNamespaces(t *testing.T) {
	folder, err := state.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for name, day := range map[string]string{"a": "2026-03-01", "b": "2026-02-01", "old": "2026-01-29", "strange": "yesterday"} {
		if err := folder.WriteFile(chosenNote+name, []byte(day)); err != nil {
			t.Fatal(err)
		}
	}
	k := settings.Kubernetes{Namespace: "a"}
	if n := reachOf(k, k).withChosen(folder, now); !slices.Equal(n.known, []string{"a"}) {
		t.Errorf("where jobs may not choose: %q", n.known)
	}
	k.NamespaceOverwriteAllowed = "."
	if n := reachOf(k, settings.Kubernetes{Namespace: "c"}).withChosen(folder, now); !slices.Equal(n.known, []string{"a", "c", "b"}) {
		t.Errorf("known are %q", n.known)
	}
	if left, err := folder.List(chosenNote); err != nil || len(left) != 2 {
		t.Errorf("remembered are still %q, %v", left, err)
	}
}
