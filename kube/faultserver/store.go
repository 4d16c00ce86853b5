package faultserver

import (
	"crypto/rand"
	"encoding/hex"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// store is the Server's Pods and nodes, and the history of its Pods. The
// Server's lock guards it.
type store struct {
	version int
	pods    []*corev1.Pod
	nodes   []*corev1.Node
	history []change
}

// change is one event of a Pod, which a watch repeats.
type change struct {
	version int
	kind    watch.EventType
	pod     *corev1.Pod
}

func (st *store) next() string {
	st.version++
	return strconv.Itoa(st.version)
}

func (st *store) index(namespace, name string) int {
	return slices.IndexFunc(st.pods, func(p *corev1.Pod) bool { return p.Namespace == namespace && p.Name == name })
}

// put stores a new version of a Pod.
func (st *store) put(kind watch.EventType, pod *corev1.Pod) {
	pod.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
	pod.ResourceVersion = st.next()
	if i := st.index(pod.Namespace, pod.Name); i >= 0 {
		st.pods[i] = pod
	} else {
		st.pods = append(st.pods, pod)
	}
	st.history = append(st.history, change{st.version, kind, pod.DeepCopy()})
}

func (st *store) add(pod *corev1.Pod) *corev1.Pod {
	pod = pod.DeepCopy()
	pod.UID = newUID()
	pod.CreationTimestamp = metav1.NewTime(time.Now().Truncate(time.Second))
	if pod.Status.Phase == "" {
		pod.Status.Phase = corev1.PodPending
	}
	st.put(watch.Added, pod)
	return pod
}

func (st *store) remove(i int) {
	gone := st.pods[i].DeepCopy()
	gone.ResourceVersion = st.next()
	st.pods = slices.Delete(st.pods, i, i+1)
	st.history = append(st.history, change{st.version, watch.Deleted, gone})
}

func newUID() types.UID {
	b := make([]byte, 16)
	_, _ = rand.Read(b)
	return types.UID(hex.EncodeToString(b))
}

// SetAhead has the cluster's clock be ahead of this host's.
func (s *Server) SetAhead(by time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ahead = by
}

// now is what the cluster's clock tells.
func (s *Server) now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Now().Add(s.ahead)
}

// AddPod stores a Pod as if somebody had made it, and gives it as stored.
func (s *Server) AddPod(pod *corev1.Pod, steps ...Step) *corev1.Pod {
	s.mu.Lock()
	defer s.mu.Unlock()
	added := s.store.add(pod)
	s.walk(added, steps)
	s.touch()
	if i := s.store.index(added.Namespace, added.Name); i >= 0 {
		return s.store.pods[i].DeepCopy()
	}
	return added
}

// Pods are all Pods there are, oldest first.
func (s *Server) Pods() []corev1.Pod {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]corev1.Pod, 0, len(s.store.pods))
	for _, p := range s.store.pods {
		all = append(all, *p.DeepCopy())
	}
	return all
}

// SetNode stores a node that is ready or not, from now on.
func (s *Server) SetNode(name string, ready bool) { s.SetNodeSince(name, ready, time.Now()) }

// SetNodeSince stores a node that has been ready or not since a time.
func (s *Server) SetNodeSince(name string, ready bool, since time.Time) {
	node := &corev1.Node{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: newUID()},
		Status: corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{Architecture: "amd64"}, Conditions: []corev1.NodeCondition{{
			Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", Message: "kubelet is posting ready status",
			LastTransitionTime: metav1.NewTime(since.Truncate(time.Second)),
		}}},
	}
	if !ready {
		c := &node.Status.Conditions[0]
		c.Status, c.Reason, c.Message = corev1.ConditionUnknown, "NodeStatusUnknown", "Kubelet stopped posting node status."
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropNode(name)
	node.ResourceVersion = s.store.next()
	s.store.nodes = append(s.store.nodes, node)
	s.touch()
}

// RemoveNode removes a node, as a provider does that takes a machine back.
func (s *Server) RemoveNode(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropNode(name)
	s.touch()
}

func (s *Server) dropNode(name string) {
	s.store.nodes = slices.DeleteFunc(s.store.nodes, func(n *corev1.Node) bool { return n.Name == name })
}

// KeepTerminating leaves deleted Pods as they are, as when no kubelet ends
// them. Without it a deleted Pod goes at once.
func (s *Server) KeepTerminating() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lingering = true
}
