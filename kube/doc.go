// Package kube is the room of all that talks to the cluster. It holds no code;
// its test makes examples/rbac.yaml from the markers beside the API calls: a
// comment "rbac: RESOURCE VERB…" names what a call needs.
package kube
