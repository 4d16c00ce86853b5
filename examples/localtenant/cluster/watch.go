// Package cluster watches the Pods and Nodes of a tenant for the gateway, and
// applies manifests.
package cluster

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// SystemNamespace is the one whose Pods nobody rents nodes for.
const SystemNamespace = "kube-system"

// Watch knows the Pods and Nodes of a cluster as they are now.
type Watch struct {
	client  *typedcorev1.CoreV1Client
	changed func()
	bound   func(node string)

	mu    sync.Mutex
	pods  cache.Store
	nodes cache.Store
}

// NewWatch makes a watch that knows nothing before Run. changed is called at
// every change of a Pod or Node.
func NewWatch(config *rest.Config, changed func()) (*Watch, error) {
	client, err := typedcorev1.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("watch the cluster: %w", err)
	}
	return &Watch{client: client, changed: changed, bound: func(string) {}}, nil
}

// OnBind has bound called with the node of each Pod at the moment that it is
// bound, but for Pods in kube-system. It must be set before Run, and must not
// block.
func (w *Watch) OnBind(bound func(node string)) { w.bound = bound }

// Run watches until the context is over. It returns when the first lists are
// complete.
func (w *Watch) Run(ctx context.Context) error {
	pods, podInformer := w.inform("pods", &corev1.Pod{})
	nodes, nodeInformer := w.inform("nodes", &corev1.Node{})
	w.mu.Lock()
	w.pods, w.nodes = pods, nodes
	w.mu.Unlock()
	go podInformer.RunWithContext(ctx)
	go nodeInformer.RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), podInformer.HasSynced, nodeInformer.HasSynced) {
		return fmt.Errorf("watch the cluster: %w", context.Cause(ctx))
	}
	return nil
}

func (w *Watch) inform(resource string, kind runtime.Object) (cache.Store, cache.Controller) {
	return cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.NewListWatchFromClient(w.client.RESTClient(), resource, metav1.NamespaceAll, fields.Everything()),
		ObjectType:    kind,
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { w.changed() },
			UpdateFunc: func(before, after any) {
				if node := bindsTo(before, after); node != "" {
					w.bound(node)
				}
				w.changed()
			},
			DeleteFunc: func(any) { w.changed() },
		},
	})
}

// bindsTo gives the node to which a change of a Pod has bound it, or "".
func bindsTo(before, after any) string {
	was, wasPod := before.(*corev1.Pod)
	is, isPod := after.(*corev1.Pod)
	if !wasPod || !isPod || is.Namespace == SystemNamespace || was.Spec.NodeName != "" {
		return ""
	}
	return is.Spec.NodeName
}

// UnfinishedPods counts the Pods that need a node: all but the finished, and
// but those in kube-system.
func (w *Watch) UnfinishedPods() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.pods == nil {
		return 0
	}
	return countUnfinished(w.pods.List())
}

func countUnfinished(objects []any) int {
	count := 0
	for _, object := range objects {
		pod, ok := object.(*corev1.Pod)
		if !ok || pod.Namespace == SystemNamespace {
			continue
		}
		if pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
			count++
		}
	}
	return count
}

// NodeReady tells whether the cluster sees a node as ready.
func (w *Watch) NodeReady(name string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.nodes == nil {
		return false
	}
	object, found, err := w.nodes.GetByKey(name)
	if err != nil || !found {
		return false
	}
	node, ok := object.(*corev1.Node)
	if !ok {
		return false
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// DeleteNode deletes a Node object. One that is not there is no error.
func (w *Watch) DeleteNode(ctx context.Context, name string) error {
	err := w.client.Nodes().Delete(ctx, name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete Node %s: %w", name, err)
	}
	return nil
}

// AwaitServiceAccount waits until a namespace has its default service account:
// before, no Pod can be created in it.
func (w *Watch) AwaitServiceAccount(ctx context.Context, namespace string) error {
	accounts := w.client.ServiceAccounts(namespace)
	selector := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", "default").String()}
	list, err := accounts.List(ctx, selector)
	if err != nil {
		return fmt.Errorf("look for the service account of namespace %s: %w", namespace, err)
	}
	if len(list.Items) > 0 {
		return nil
	}
	selector.ResourceVersion = list.ResourceVersion
	watcher, err := accounts.Watch(ctx, selector)
	if err != nil {
		return fmt.Errorf("watch for the service account of namespace %s: %w", namespace, err)
	}
	defer watcher.Stop()
	select {
	case <-watcher.ResultChan():
		return nil
	case <-ctx.Done():
		return fmt.Errorf("namespace %s has no default service account yet: %w", namespace, context.Cause(ctx))
	}
}
