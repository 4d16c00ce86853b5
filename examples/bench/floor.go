package main

import (
	"context"
	"errors"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes/scheme"
	typed "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/remotecommand"

	"github.com/socialweb-computer/tenant-executor/examples/testbed"
)

// floor starts a Pod like a job's and runs one command in it, with nothing but
// client-go, and gives the times of both.
func (b *bench) floor(ctx context.Context) (start, exec time.Duration, err error) {
	began := time.Now()
	pod, err := b.plainPod(ctx)
	if err != nil {
		return 0, 0, err
	}
	start = time.Since(began)
	began = time.Now()
	if err := b.kubectlExec(ctx, io.Discard, pod.Name, "true"); err != nil {
		return 0, 0, err
	}
	exec = time.Since(began)
	client, err := b.bed.Admin(ctx)
	if err != nil {
		return 0, 0, err
	}
	if err := client.Pods(testbed.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{}); err != nil {
		return 0, 0, err
	}
	return start, exec, b.noPods(ctx)
}

// plainPod makes a Pod like a job's, whose containers end at once on TERM, and
// waits until it runs.
func (b *bench) plainPod(ctx context.Context) (*corev1.Pod, error) {
	client, err := b.bed.Admin(ctx)
	if err != nil {
		return nil, err
	}
	pods := client.Pods(testbed.Namespace)
	keep := []string{"sh", "-c", "trap 'exit 0' TERM; sleep 1000 & wait"}
	grace, no := int64(1), false
	mounts := []corev1.VolumeMount{{Name: "builds", MountPath: "/builds"}}
	created, err := pods.Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "floor-"},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, TerminationGracePeriodSeconds: &grace, AutomountServiceAccountToken: &no,
			Containers: []corev1.Container{
				{Name: "build", Image: b.bed.Image("busybox"), Command: keep, ImagePullPolicy: corev1.PullIfNotPresent, VolumeMounts: mounts},
				{Name: "helper", Image: b.bed.Image("helper"), Command: keep, ImagePullPolicy: corev1.PullIfNotPresent, VolumeMounts: mounts},
			},
			Volumes: []corev1.Volume{{Name: "builds", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	events, err := pods.Watch(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("metadata.name", created.Name).String(), ResourceVersion: created.ResourceVersion,
	})
	if err != nil {
		return nil, err
	}
	defer events.Stop()
	for event := range events.ResultChan() {
		if seen, ok := event.Object.(*corev1.Pod); ok && seen.Status.Phase == corev1.PodRunning {
			return seen, nil
		}
	}
	return nil, errors.New("the floor's Pod did not run")
}

// plainExec runs a command as kubectl exec does.
func plainExec(ctx context.Context, kubeconfig, pod string, command []string, out io.Writer) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	client, err := typed.NewForConfig(config)
	if err != nil {
		return err
	}
	request := client.RESTClient().Post().Namespace(testbed.Namespace).Resource("pods").Name(pod).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Container: "build", Command: command, Stdout: true, Stderr: true}, scheme.ParameterCodec)
	executor, err := remotecommand.NewSPDYExecutor(config, "POST", request.URL())
	if err != nil {
		return err
	}
	return executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: out, Stderr: io.Discard})
}

// noPods waits until the namespace is empty.
func (b *bench) noPods(ctx context.Context) error {
	client, err := b.bed.Admin(ctx)
	if err != nil {
		return err
	}
	return testbed.Until(ctx, "the Pods to go", time.Minute, func(ctx context.Context) (bool, error) {
		list, err := client.Pods(testbed.Namespace).List(ctx, metav1.ListOptions{})
		return err == nil && len(list.Items) == 0, err
	})
}
