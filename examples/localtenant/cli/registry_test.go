package cli

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/socialweb-computer/tenant-executor/examples/localtenant/daemon"
)

func TestRegistryText(t *testing.T) {
	for _, test := range []struct {
		status daemon.RegistryStatus
		want   string
	}{
		{daemon.RegistryStatus{}, "a:1"},
		{daemon.RegistryStatus{Repositories: "x"}, "a:1"},
		{daemon.RegistryStatus{Down: true}, "a:1, answers 503 to everything"},
		{daemon.RegistryStatus{Refuse: true}, "a:1, refuses connections"},
		{
			daemon.RegistryStatus{RateLimited: true, Delay: metav1.Duration{Duration: time.Second}, BytesPerSecond: 5, Repositories: "x/*"},
			"a:1, answers 429 to each GET of a manifest, waits 1s before each answer, sends 5 bytes per second, for x/* alone",
		},
	} {
		test.status.Plain = "a:1"
		if got := registryText(test.status); got != test.want {
			t.Errorf("%q, want %q", got, test.want)
		}
	}
}
