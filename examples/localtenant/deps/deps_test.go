package deps

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMissing(t *testing.T) {
	missing := Missing(func(path string) bool { return path != "/usr/lib/cni/bridge" && path != "/usr/sbin/runc" })
	if diff := cmp.Diff([]string{"runc", "containernetworking-plugins"}, missing); diff != "" {
		t.Errorf("missing (-want +got):\n%s", diff)
	}
	if missing := Missing(func(string) bool { return true }); len(missing) > 0 {
		t.Errorf("missing where all is there: %v", missing)
	}
}
