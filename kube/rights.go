// Code generated from the "rbac:" markers by "make update"; DO NOT EDIT.

package kube

// Rights are all that the driver needs on a cluster.
func Rights() []Right {
	return []Right{
		{Verb: "get", Resource: "nodes", ClusterWide: true},
		{Verb: "list", Resource: "nodes", ClusterWide: true},
		{Verb: "list", Resource: "pods", ClusterWide: true, Optional: true},
		{Verb: "create", Resource: "namespaces", ClusterWide: true, PerJob: true},
		{Verb: "delete", Resource: "namespaces", ClusterWide: true, PerJob: true},
		{Verb: "get", Resource: "namespaces", ClusterWide: true, PerJob: true},
		{Verb: "list", Resource: "namespaces", ClusterWide: true, PerJob: true},
		{Verb: "list", Resource: "events"},
		{Verb: "create", Group: "policy", Resource: "poddisruptionbudgets"},
		{Verb: "create", Resource: "pods"},
		{Verb: "delete", Resource: "pods"},
		{Verb: "get", Resource: "pods"},
		{Verb: "list", Resource: "pods"},
		{Verb: "patch", Resource: "pods"},
		{Verb: "watch", Resource: "pods"},
		{Verb: "create", Resource: "pods/exec"},
		{Verb: "get", Resource: "pods/exec"},
		{Verb: "get", Resource: "pods/log"},
		{Verb: "create", Resource: "secrets"},
		{Verb: "delete", Resource: "secrets"},
		{Verb: "get", Resource: "secrets"},
		{Verb: "list", Resource: "secrets"},
		{Verb: "patch", Resource: "secrets"},
		{Verb: "get", Resource: "serviceaccounts"},
	}
}
