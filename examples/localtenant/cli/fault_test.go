package cli

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/socialweb-computer/tenant-executor/examples/localtenant/faults"
)

func TestFaultsText(t *testing.T) {
	for want, settings := range map[string]faults.Settings{
		"none": {},
		"the next 2 boots fail; the next 1 Pods lose their node when they are bound": {FailingBoots: 2, DropsOnBind: 1},
		"the next 1 nodes never become ready":                                        {NeverReady: 1},
		"kubelets of new nodes refuse connections for 10s after the node is ready":   {Unreachable: metav1.Duration{Duration: 10 * time.Second}},
	} {
		if got := faultsText(settings); got != want {
			t.Errorf("%+v: %q, want %q", settings, got, want)
		}
	}
}
