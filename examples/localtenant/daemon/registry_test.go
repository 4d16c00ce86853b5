package daemon

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/socialweb-computer/tenant-executor/examples/localtenant/registry"
)

func TestRegistryChange(t *testing.T) {
	before := registry.Faults{Delay: time.Second, Down: true, Repositories: "a"}
	for _, test := range []struct {
		name   string
		change RegistryChange
		want   registry.Faults
	}{
		{"nothing", RegistryChange{}, before},
		{"mended", RegistryChange{Mend: true}, registry.Faults{}},
		{"one", RegistryChange{Down: new(false)}, registry.Faults{Delay: time.Second, Repositories: "a"}},
		{
			"all",
			RegistryChange{
				Delay: &metav1.Duration{}, Down: new(false), Refuse: new(true), RateLimited: new(true),
				BytesPerSecond: new(int64(7)), Repositories: new(""),
			},
			registry.Faults{Refuse: true, RateLimited: true, BytesPerSecond: 7},
		},
		{"mended and set", RegistryChange{Mend: true, RateLimited: new(true)}, registry.Faults{RateLimited: true}},
	} {
		if got := test.change.apply(before); got != test.want {
			t.Errorf("%s: %+v, want %+v", test.name, got, test.want)
		}
	}
}
