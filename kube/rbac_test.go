package kube_test

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/template"

	gocmp "github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write generated files instead of comparing them")

const (
	rbacPath          = "../examples/rbac.yaml"
	rbacNamespacePath = "../examples/rbac-namespace-per-job.yaml"
)

// rule is one resource and what the driver does with it.
type rule struct {
	Group, Resource string
	Verbs           []string
	// Everywhere is whether it is a right on all namespaces of a resource that
	// belongs to one. The driver goes on without it.
	Everywhere bool
}

// clusterScoped are the resources that belong to no namespace.
var clusterScoped = []string{"nodes"}

func TestRBACExampleIsWhatTheCallsNeed(t *testing.T) {
	namespaced, cluster, namespaces := rules(t)
	for path, file := range map[string]*template.Template{rbacPath: rbac, rbacNamespacePath: rbacNamespace} {
		var want bytes.Buffer
		if err := file.Execute(&want, map[string][]rule{"Namespaced": namespaced, "Cluster": cluster, "Namespaces": namespaces}); err != nil {
			t.Fatal(err)
		}
		if *update {
			if err := os.WriteFile(path, want.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := gocmp.Diff(want.String(), string(got)); diff != "" {
			t.Errorf("%s is not what the markers say; run make update (-want +got):\n%s", path, diff)
		}
	}
}

const rightsPath = "rights.go"

// What the driver asks about itself is the same list.
func TestRightsAreWhatTheCallsNeed(t *testing.T) {
	namespaced, cluster, namespaces := rules(t)
	var want bytes.Buffer
	if err := rightsTable.Execute(&want, map[string][]rule{"Namespaced": namespaced, "Cluster": cluster, "Namespaces": namespaces}); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(rightsPath, want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(rightsPath)
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(want.String(), string(got)); diff != "" {
		t.Errorf("kube/rights.go is not what the markers say; run make update (-want +got):\n%s", diff)
	}
}

// Every request has a marker in the lines above it, or the role would lack it.
func TestEveryCallHasAMarker(t *testing.T) {
	call := regexp.MustCompile(`[^1]\.Resource\("|"/apis/`)
	calls := 0
	eachFile(t, func(path, text string) {
		lines := strings.Split(text, "\n")
		for i, line := range lines {
			if !call.MatchString(line) {
				continue
			}
			calls++
			if i == 0 || !marker.MatchString(lines[i-1]) {
				t.Errorf("%s:%d: no \"// rbac:\" line above this request", path, i+1)
			}
		}
	})
	if calls < 8 {
		t.Errorf("only %d requests found; the test does not see them any more", calls)
	}
}

// marker is "rbac:" for a right that is needed where jobs are, and "rbac
// everywhere:" for one in all namespaces.
var marker = regexp.MustCompile(`(?m)^\s*// rbac( everywhere)?: (\S+) (.+)$`)

// rules are those within the job's namespace, those about the whole cluster,
// and those that only namespace_per_job needs.
func rules(t *testing.T) (namespaced, cluster, namespaces []rule) {
	t.Helper()
	type where struct{ everywhere, resource string }
	verbs := map[where][]string{}
	eachFile(t, func(_, text string) {
		for _, match := range marker.FindAllStringSubmatch(text, -1) {
			at := where{match[1], match[2]}
			verbs[at] = append(verbs[at], strings.Fields(match[3])...)
		}
	})
	for at, list := range verbs {
		resource := at.resource
		slices.Sort(list)
		// As RESOURCE, or RESOURCE.GROUP outside the core's.
		name, group, _ := strings.Cut(resource, ".")
		r := rule{group, name, slices.Compact(list), at.everywhere != ""}
		switch {
		case r.Everywhere:
			cluster = append(cluster, r)
		case resource == "namespaces":
			namespaces = append(namespaces, r)
		case slices.Contains(clusterScoped, resource):
			cluster = append(cluster, r)
		default:
			namespaced = append(namespaced, r)
		}
	}
	byName := func(a, b rule) int { return cmp.Compare(a.Resource, b.Resource) }
	slices.SortFunc(namespaced, byName)
	slices.SortFunc(cluster, byName)
	return namespaced, cluster, namespaces
}

func eachFile(t *testing.T, see func(path, text string)) {
	t.Helper()
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, "faultserver") {
			return err
		}
		text, err := os.ReadFile(path)
		if err == nil {
			see(path, string(text))
		}
		return err
	})
	if err != nil {
		t.Fatal(fmt.Errorf("reading kube: %w", err))
	}
}

// manifest is a template that knows the rules of a role and the driver's group.
func manifest(text string) *template.Template {
	join := func(list []string) string { return strings.Join(list, ", ") }
	return template.Must(template.New("manifest").Funcs(template.FuncMap{"join": join}).Parse(text + `{{define "rules"}}rules:
{{- range .}}
- apiGroups: ["{{.Group}}"]
  resources: [{{.Resource}}]
  verbs: [{{join .Verbs}}]
{{- end}}{{end}}{{define "subjects"}}subjects:
- apiGroup: rbac.authorization.k8s.io
  kind: Group
  name: tenant-executor{{end}}`))
}

var rbac = manifest(`# What the driver may do on a tenant cluster, and no more. Made from the
# "rbac:" markers in kube; "make update" writes it again.
#
# The driver's client certificate carries the group (its O field). Job Pods live
# in the namespace "ci"; for another namespace change it here and in the
# driver's configuration.
apiVersion: v1
kind: Namespace
metadata:
  name: ci
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: tenant-executor-jobs
{{template "rules" .Namespaced}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: tenant-executor-jobs
  namespace: ci
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: tenant-executor-jobs
{{template "subjects"}}
---
# Nodes belong to no namespace, and no two jobs share one, wherever they are: so
# job Pods of all namespaces are listed, for what a job waits for and for "ps -A".
# RBAC cannot say "their labels and nodes alone". Without "pods" here the driver
# works, and speaks of its own namespace.
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: tenant-executor-nodes
{{template "rules" .Cluster}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: tenant-executor-nodes
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: tenant-executor-nodes
{{template "subjects"}}
---
# The events of nodes are in the namespace "default".
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: tenant-executor-node-events
  namespace: default
rules:
- apiGroups: [""]
  resources: [events]
  verbs: [list]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: tenant-executor-node-events
  namespace: default
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: tenant-executor-node-events
{{template "subjects"}}
`)

var rbacNamespace = manifest(`# What namespace_per_job needs beside rbac.yaml: namespaces are made and deleted,
# and the rights on jobs hold in all of them. The driver can then delete any
# namespace of the cluster and read every Secret's name: give it a cluster that
# runs jobs and nothing else. Made from the "rbac:" markers in kube; "make
# update" writes it again.
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: tenant-executor-namespaces
{{template "rules" .Namespaces}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: tenant-executor-namespaces
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: tenant-executor-namespaces
{{template "subjects"}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: tenant-executor-jobs-everywhere
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: tenant-executor-jobs
{{template "subjects"}}
`)

var rightsTable = template.Must(template.New("rights").Parse(`// Code generated from the "rbac:" markers by "make update"; DO NOT EDIT.

package kube

// Rights are all that the driver needs on a cluster.
func Rights() []Right {
	return []Right{
{{- range .Cluster}}{{$rule := .}}{{range .Verbs}}
		{Verb: "{{.}}", {{with $rule.Group}}Group: "{{.}}", {{end}}Resource: "{{$rule.Resource}}", ClusterWide: true{{if $rule.Everywhere}}, Optional: true{{end}}},{{end}}
{{- end}}
{{- range .Namespaces}}{{$rule := .}}{{range .Verbs}}
		{Verb: "{{.}}", Resource: "{{$rule.Resource}}", ClusterWide: true, PerJob: true},{{end}}
{{- end}}
{{- range .Namespaced}}{{$rule := .}}{{range .Verbs}}
		{Verb: "{{.}}", {{with $rule.Group}}Group: "{{.}}", {{end}}Resource: "{{$rule.Resource}}"},{{end}}
{{- end}}
	}
}
`))
