package kube

// Right is one thing that the driver has to be allowed to do on a cluster. The
// list of them is made from the markers beside the requests.
type Right struct {
	// Verb, Group and Resource are what RBAC calls them. The core's group is "";
	// a subresource stands behind a slash.
	Verb, Group, Resource string
	// ClusterWide is whether the resource belongs to no namespace, or the right is
	// one on all namespaces.
	ClusterWide bool
	// Optional is whether the driver works without it, and tells less.
	Optional bool
	// PerJob is whether it is needed only where each job has a namespace of its
	// own.
	PerJob bool
}

// String is the right as people say it.
func (r Right) String() string {
	if r.Group != "" {
		return r.Verb + " " + r.Resource + "." + r.Group
	}
	return r.Verb + " " + r.Resource
}
