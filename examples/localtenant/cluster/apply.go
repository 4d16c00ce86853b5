package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

// fieldManager is the name under which objects are applied.
const fieldManager = "localtenant"

// ReadManifest reads the objects of a YAML file with one or more documents.
func ReadManifest(in io.Reader) ([]*unstructured.Unstructured, error) {
	decoder := yaml.NewYAMLOrJSONDecoder(in, 4096)
	var objects []*unstructured.Unstructured
	for number := 1; ; number++ {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(object)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", number, err)
		}
		if len(object.Object) == 0 {
			continue
		}
		if object.GetKind() == "" || object.GetAPIVersion() == "" || object.GetName() == "" {
			return nil, fmt.Errorf("document %d: needs apiVersion, kind and metadata.name", number)
		}
		objects = append(objects, object)
	}
}

// Namespaces gives the namespaces that the objects are or lie in.
func Namespaces(objects []*unstructured.Unstructured) []string {
	var names []string
	for _, object := range objects {
		name := object.GetNamespace()
		if object.GetKind() == "Namespace" && object.GetAPIVersion() == "v1" {
			name = object.GetName()
		}
		if name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Apply makes the cluster hold the objects, by server-side apply. Namespaces
// come first, also those that objects only lie in.
func Apply(ctx context.Context, config *rest.Config, objects []*unstructured.Unstructured) error {
	finder, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return fmt.Errorf("apply: %w", err)
	}
	groups, err := restmapper.GetAPIGroupResources(finder)
	if err != nil {
		return fmt.Errorf("apply: ask the apiserver for its kinds: %w", err)
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("apply: %w", err)
	}
	mapper := restmapper.NewDiscoveryRESTMapper(groups)
	for _, object := range inOrder(objects) {
		if err := applyOne(ctx, client, mapper, object); err != nil {
			return fmt.Errorf("apply %s %s: %w", object.GetKind(), strings.TrimPrefix(object.GetNamespace()+"/"+object.GetName(), "/"), err)
		}
	}
	return nil
}

// inOrder puts the namespaces in front, and adds those that are missing.
func inOrder(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	isNamespace := func(object *unstructured.Unstructured) bool {
		return object.GetKind() == "Namespace" && object.GetAPIVersion() == "v1"
	}
	var front, rest []*unstructured.Unstructured
	present := map[string]bool{}
	for _, object := range objects {
		if isNamespace(object) {
			front = append(front, object)
			present[object.GetName()] = true
		} else {
			rest = append(rest, object)
		}
	}
	for _, name := range Namespaces(objects) {
		if !present[name] {
			object := &unstructured.Unstructured{}
			object.SetAPIVersion("v1")
			object.SetKind("Namespace")
			object.SetName(name)
			front = append(front, object)
		}
	}
	return append(front, rest...)
}

func applyOne(ctx context.Context, client dynamic.Interface, mapper meta.RESTMapper, object *unstructured.Unstructured) error {
	kind := object.GroupVersionKind()
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return err
	}
	resource := client.Resource(mapping.Resource)
	options := metav1.ApplyOptions{FieldManager: fieldManager, Force: true}
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		_, err = resource.Apply(ctx, object.GetName(), object, options)
		return err
	}
	namespace := object.GetNamespace()
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	_, err = resource.Namespace(namespace).Apply(ctx, object.GetName(), object, options)
	return err
}
