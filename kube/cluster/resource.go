package cluster

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// clustersResource is what Cluster objects are called in an address.
const clustersResource = "clusters"

// resource is where Cluster objects are in an API.
type resource struct {
	Group      string `json:"group"`
	Version    string `json:"version"`
	Resource   string `json:"resource"`
	Namespaced bool   `json:"namespaced"`
}

// name is how kubectl names the resource.
func (r resource) name() string { return r.Resource + "." + r.Group }

// matches says whether this is what is asked for, as RESOURCE.GROUP or "".
func (r resource) matches(wanted string) bool {
	if r.Resource == "" || r.Version == "" {
		return false
	}
	if wanted == "" {
		return r.Resource == clustersResource
	}
	return wanted == r.name()
}

// path is the address of an object.
func (r resource) path(namespace, name string) []string {
	path := []string{"apis", r.Group, r.Version}
	if r.Namespaced {
		path = append(path, "namespaces", namespace)
	}
	return append(path, r.Resource, name)
}

// resource looks for the API group that serves Cluster objects. client-go's
// discovery does the same, and registers every API group there is when the
// program starts; a driver starts about ten times a job.
func (w *workspace) resource(ctx context.Context) (resource, error) {
	// Where a group of another kind does not answer, the others still count.
	all, err := w.resources(ctx)
	wanted := w.discovery.Resource
	var found []resource
	for _, r := range all {
		if r.matches(wanted) {
			found = append(found, r)
		}
	}
	if wanted == "" {
		wanted = clustersResource
	}
	switch {
	case len(found) == 0 && err != nil:
		return resource{}, err
	case len(found) == 0:
		return resource{}, &FindError{Kind: NoResource, Text: fmt.Sprintf("no API group at %s serves %q", w.config.Host, wanted)}
	case len(found) == 1:
		return found[0], nil
	}
	slices.SortFunc(found, func(a, b resource) int { return cmp.Compare(a.Group, b.Group) })
	names := make([]string, len(found))
	for i, r := range found {
		names[i] = r.name()
	}
	return resource{}, &FindError{Kind: Ambiguous, Text: fmt.Sprintf("several API groups at %s serve %q: %s", w.config.Host, wanted, strings.Join(names, ", "))}
}

// aggregated asks for all groups with their resources in one answer; a server
// that cannot do that answers with the groups alone, as of old.
const aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"

// resources are those of all groups, each in the version that the server
// prefers.
func (w *workspace) resources(ctx context.Context) ([]resource, error) {
	data, err := w.getAs(ctx, aggregated, "apis")
	if err != nil {
		return nil, err
	}
	var kind metav1.TypeMeta
	if err := json.Unmarshal(data, &kind); err != nil {
		return nil, fmt.Errorf("the list of API groups at %s: %w", w.config.Host, err)
	}
	if kind.Kind == "APIGroupDiscoveryList" {
		return w.aggregatedResources(data)
	}
	var groups metav1.APIGroupList
	if err := json.Unmarshal(data, &groups); err != nil {
		return nil, fmt.Errorf("the list of API groups at %s: %w", w.config.Host, err)
	}
	var all []resource
	var failed error
	for _, group := range groups.Groups {
		found, err := w.resourcesOf(ctx, group)
		all, failed = append(all, found...), cmp.Or(failed, err)
	}
	return all, failed
}

func (w *workspace) aggregatedResources(data []byte) ([]resource, error) {
	var list apidiscovery.APIGroupDiscoveryList
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, fmt.Errorf("the list of API groups at %s: %w", w.config.Host, err)
	}
	var all []resource
	for _, group := range list.Items {
		seen := map[string]bool{} // the first version is the one preferred
		for _, version := range group.Versions {
			for _, r := range version.Resources {
				if seen[r.Resource] {
					continue
				}
				seen[r.Resource] = true
				all = append(all, resource{Group: group.Name, Version: version.Version, Resource: r.Resource, Namespaced: r.Scope == apidiscovery.ScopeNamespace})
			}
		}
	}
	return all, nil
}

// resourcesOf asks for the resources of one group. Where the group is given,
// others are not asked.
func (w *workspace) resourcesOf(ctx context.Context, group metav1.APIGroup) ([]resource, error) {
	if wanted := w.discovery.Resource; wanted != "" && schema.ParseGroupResource(wanted).Group != group.Name {
		return nil, nil
	}
	versions := append([]metav1.GroupVersionForDiscovery{group.PreferredVersion}, group.Versions...)
	var all []resource
	seen := map[string]bool{}
	asked := map[string]bool{"": true}
	for _, version := range versions {
		if asked[version.Version] {
			continue
		}
		asked[version.Version] = true
		var list metav1.APIResourceList
		data, err := w.get(ctx, "apis", group.Name, version.Version)
		if err == nil {
			err = json.Unmarshal(data, &list)
		}
		if err != nil {
			return nil, fmt.Errorf("the resources of API group %s at %s: %w", group.Name, w.config.Host, err)
		}
		for _, r := range list.APIResources {
			if !seen[r.Name] {
				seen[r.Name] = true
				all = append(all, resource{Group: group.Name, Version: version.Version, Resource: r.Name, Namespaced: r.Namespaced})
			}
		}
	}
	return all, nil
}
