// Package kcp writes the Cluster object in which the kcp side says where a
// tenant's apiserver is.
package kcp

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/socialweb-computer/tenant-executor/examples/localtenant/cluster"
)

// definition is the CustomResourceDefinition of Cluster.
//
//go:embed crd.yaml
var definition string

// Phase is the state of a tenant in one word, as the kcp side tells it.
type Phase string

// The phases of a Cluster.
const (
	// Provisioning: the apiserver starts.
	Provisioning Phase = "Provisioning"
	// Ready: the apiserver has answered. Nobody notices when it goes away.
	Ready Phase = "Ready"
)

const (
	fieldManager = "localtenant"
	// servePause lies between two looks whether a new kind is served.
	servePause = 20 * time.Millisecond
)

// Resource is the resource of the Cluster objects.
func Resource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "tenancy.socialweb.computer", Version: "v1alpha1", Resource: "clusters"}
}

// Directory is where tenants are looked up.
type Directory struct {
	config   *rest.Config
	clusters dynamic.ResourceInterface
	name     string
}

// NewDirectory makes the directory with one tenant's entry; nothing is written
// yet.
func NewDirectory(config *rest.Config, name string) (*Directory, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("directory of tenants: %w", err)
	}
	return &Directory{config: config, clusters: client.Resource(Resource()), name: name}, nil
}

// Open makes the kind known and returns when its objects can be written.
func (d *Directory) Open(ctx context.Context) error {
	objects, err := cluster.ReadManifest(strings.NewReader(definition))
	if err != nil {
		return fmt.Errorf("directory of tenants: %w", err)
	}
	if err := cluster.Apply(ctx, d.config, objects); err != nil {
		return fmt.Errorf("directory of tenants: %w", err)
	}
	tick := time.NewTicker(servePause)
	defer tick.Stop()
	for {
		_, err := d.clusters.List(ctx, metav1.ListOptions{Limit: 1})
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("directory of tenants: %s are not served: %w", Resource().Resource, errors.Join(context.Cause(ctx), err))
		case <-tick.C:
		}
	}
}

// Publish writes where the tenant's apiserver is, and makes its Cluster object
// if somebody has deleted it.
func (d *Directory) Publish(ctx context.Context, url string, phase Phase) error {
	object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
	object.SetGroupVersionKind(Resource().GroupVersion().WithKind("Cluster"))
	object.SetName(d.name)
	options := metav1.ApplyOptions{FieldManager: fieldManager, Force: true}
	if _, err := d.clusters.Apply(ctx, d.name, object, options); err != nil {
		return fmt.Errorf("write Cluster %s on the kcp side: %w", d.name, err)
	}
	// A merge patch and no apply: whoever else has written the status in a
	// test loses, as with the real controller.
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"url": url, "phase": phase}})
	if err != nil {
		return fmt.Errorf("write status of Cluster %s on the kcp side: %w", d.name, err)
	}
	_, err = d.clusters.Patch(ctx, d.name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: fieldManager}, "status")
	if err != nil {
		return fmt.Errorf("write status of Cluster %s on the kcp side: %w", d.name, err)
	}
	return nil
}
