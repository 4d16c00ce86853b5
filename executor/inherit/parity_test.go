package inherit_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/socialweb-computer/tenant-executor/executor/inherit"
	"github.com/socialweb-computer/tenant-executor/executor/settings"
)

var update = flag.Bool("update", false, "write generated files instead of comparing them")

const (
	root       = "../.."
	parityPath = root + "/docs/reference/parity.md"
)

// The parity table is made of what the driver does with each key and of the
// tests that name it: a key that is carried over has to have one.
func TestParityTable(t *testing.T) {
	tests := testsThatName(t)
	var b strings.Builder
	b.WriteString(`# Keys of the kubernetes executor

<!-- Made by executor/inherit; "make update" writes it again. -->

What becomes of each key of ` + "`[runners.kubernetes]`" + ` when a runner changes to this driver.
` + "`tenant-executor migrate`" + ` says it of a given config.toml.

| key | here | tested by | on a real cluster |
|---|---|---|---|
`)
	for _, key := range kubernetesKeys() {
		state, carried := parity(key)
		pure, real := tests(key + "|" + field(key))
		if carried && len(pure)+len(real) == 0 {
			t.Errorf("no test names %s", key)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", key, state, strings.Join(pure, ", "), strings.Join(real, ", "))
	}
	b.WriteString(shownTable(t, tests))
	b.WriteString("\n## Feature flags\n\n| flag | here |\n|---|---|\n")
	for _, row := range inherit.Flags() {
		fmt.Fprintf(&b, "| `%s` | %s: %s |\n", row.Key, row.State, row.Note)
	}
	b.WriteString("\n## Keys of the runner's entry\n\n| key | here |\n|---|---|\n")
	for _, row := range inherit.EntryKeys() {
		fmt.Fprintf(&b, "| `%s` | %s: %s |\n", row.Key, row.State, row.Note)
	}
	if *update {
		if err := os.WriteFile(parityPath, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(parityPath)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(b.String(), string(got)); diff != "" {
		t.Errorf("%s is not what the code says; run make update (-want +got):\n%s", parityPath, diff)
	}
}

// parity is what becomes of a key, and whether the driver has it.
func parity(key string) (state string, carried bool) {
	if place, moved := inherit.Moved()[key]; moved {
		return fmt.Sprintf("`%s.%s`", place.Table, place.Key), false
	}
	if i := slices.IndexFunc(inherit.Without(), func(r inherit.Row) bool { return r.Key == key }); i >= 0 {
		row := inherit.Without()[i]
		return string(row.State) + ": " + row.Note, false
	}
	if key == "autoscaler" {
		return "the table `[warm]`", false
	}
	for _, table := range settings.Tables() {
		if table.Name == "kubernetes."+key && table.Parity != "" {
			return "carried, with a difference: " + table.Parity, true
		}
		for _, k := range table.Keys {
			if k.Path() == "kubernetes."+key && k.Parity != "" {
				return "carried, with a difference: " + k.Parity, true
			}
		}
	}
	return "carried", true
}

// shown is what the tests on the real cluster show of volumes and profiles.
type shown struct{ key, what string }

func shownOnTheCluster() []shown {
	return []shown{
		{"volumes.host_path", "jobs work in it, and are told where they cannot write to it"},
		{"volumes.pvc", "two jobs after each other share builds, caches and files; `read_only` and `sub_path`; a claim that is not there"},
		{"volumes.config_map", "its files are at the place that a variable names"},
		{"volumes.secret", "its files are there; a Secret that is not there"},
		{"volumes.empty_dir", "it is in memory"},
		{"volumes.csi", "no driver runs on these nodes: the failure that names it"},
		{"volumes.nfs", "these nodes mount no NFS: the failure with the words of mount"},
		{"runtime_class_name", "another handler makes the Pod, with the class's overhead and node selector; an unknown class, and a handler that the node does not have"},
		{"app_armor_profile", "these nodes have none: the failure that says so"},
		{"seccomp_profile", "a job under RuntimeDefault; a profile that the node does not have"},
		{"selinux_type", "these nodes have none: the types reach the Pod, and the job runs"},
	}
}

// shownTable is the section on volumes and profiles.
func shownTable(t *testing.T, tests func(words string) (pure, real []string)) string {
	var b strings.Builder
	b.WriteString("\n## Volumes and profiles on a real cluster\n\n| key | shown | by |\n|---|---|---|\n")
	for _, row := range shownOnTheCluster() {
		_, real := tests(regexp.QuoteMeta(row.key))
		if len(real) == 0 {
			t.Errorf("no test on the real cluster names %s", row.key)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", row.key, row.what, strings.Join(real, ", "))
	}
	return b.String()
}

// named is a test and what stands in it.
type named struct {
	name, text string
}

// onTheCluster begins the names of tests on the real cluster.
const onTheCluster = "e2e "

// testsThatName finds the tests in which one of some words (a regular expression)
// stands: a key or, for the pure tests of Pods, a field of the settings.
func testsThatName(t *testing.T) func(words string) (pure, real []string) {
	t.Helper()
	var all []named
	for _, folder := range []string{"executor/pod", "executor/overwrite", "executor/settings", "cmd/tenant-executor", "examples/e2e"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			found, err := testsIn(path)
			for i := range found {
				found[i].name = strings.TrimPrefix(folder, "examples/") + " " + found[i].name
			}
			all = append(all, found...)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return func(words string) (pure, real []string) {
		word := regexp.MustCompile(`\b(` + words + `)\b`)
		for _, one := range all {
			name, isReal := strings.CutPrefix(one.name, onTheCluster)
			// Two of them tell enough.
			switch {
			case !word.MatchString(one.text):
			case isReal && len(real) < 2:
				real = append(real, name)
			case !isReal && len(pure) < 2:
				pure = append(pure, one.name)
			}
		}
		return pure, real
	}
}

// testsIn are the tests of a file, each with its own text and that of the
// functions and values of the file that it names.
func testsIn(path string) ([]named, error) {
	source, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, source, 0)
	if err != nil {
		return nil, err
	}
	var tests, others []named
	text := func(node ast.Node) string {
		// A key at the start of a line in a string has an escaped line end before it.
		return strings.ReplaceAll(string(source[set.Position(node.Pos()).Offset:set.Position(node.End()).Offset]), `\n`, "\n")
	}
	for _, declaration := range file.Decls {
		switch d := declaration.(type) {
		case *ast.FuncDecl:
			if one := (named{d.Name.Name, text(d)}); strings.HasPrefix(one.name, "Test") {
				tests = append(tests, one)
			} else {
				others = append(others, one)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if v, ok := spec.(*ast.ValueSpec); ok {
					others = append(others, named{v.Names[0].Name, text(v)})
				}
			}
		}
	}
	for i := range tests {
		own := tests[i].text
		for _, other := range others {
			if regexp.MustCompile(`\b` + other.name + `\b`).MatchString(own) {
				tests[i].text += other.text
			}
		}
	}
	return tests, nil
}

// field is the name of the settings' field for a key.
func field(key string) string {
	k := settings.Kubernetes{}
	if f, ok := k.Field(key); ok {
		return f.Name
	}
	return key
}
