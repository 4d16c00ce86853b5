package sweep

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/socialweb-computer/tenant-executor/examples/localtenant/proc"
	"github.com/socialweb-computer/tenant-executor/examples/localtenant/tenant"
)

func TestBelow(t *testing.T) {
	got := below("/srv/t/demo", []proc.Mount{{Point: "/"}, {Point: "/srv/t/demo"}, {Point: "/srv/t/demo2/x"}, {Point: "/srv/t/demo/a/b"}, {Point: "/srv/t/demo/a"}})
	if diff := cmp.Diff([]string{"/srv/t/demo/a/b", "/srv/t/demo/a", "/srv/t/demo"}, got); diff != "" {
		t.Errorf("mounts (-want +got):\n%s", diff)
	}
}

func TestFolderAlone(t *testing.T) {
	place, err := tenant.New(filepath.Join(t.TempDir(), "root"), "demo")
	if err != nil {
		t.Fatal(err)
	}
	left, err := Find(place)
	if err != nil {
		t.Fatal(err)
	}
	if !left.Empty() {
		t.Errorf("before: %+v", left)
	}
	if err := place.MakeDirs(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(place.Record(), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if left, err = Find(place); err != nil || left.Empty() || left.Folder != place.Dir() {
		t.Errorf("with a folder: %+v, %v", left, err)
	}
	var told []string
	for range 2 {
		if err := Remove(t.Context(), place, func(what string) { told = append(told, what) }); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"removed " + place.Dir()}, told); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
	if left, err = Find(place); err != nil || !left.Empty() {
		t.Errorf("after: %+v, %v", left, err)
	}
}
