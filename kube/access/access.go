// Package access asks a cluster who the caller is there and what it may do.
// Every user that a cluster knows may ask this about itself (the ClusterRole
// system:basic-user, kubernetes/plugin/pkg/auth/authorizer/rbac/bootstrappolicy).
package access

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/socialweb-computer/tenant-executor/kube"
	"github.com/socialweb-computer/tenant-executor/kube/cluster"
	"github.com/socialweb-computer/tenant-executor/kube/crash"
)

// Caller is whom the cluster takes the caller for.
type Caller struct {
	Name   string
	Groups []string
}

// WhoAmI asks who the caller is. An apiserver older than Kubernetes 1.28 does
// not know the question; its error is then apierrors.IsNotFound.
func WhoAmI(ctx context.Context, c *cluster.Client) (Caller, error) {
	review := authenticationv1.SelfSubjectReview{TypeMeta: metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "SelfSubjectReview"}}
	if err := post(ctx, c, authenticationv1.GroupName, "selfsubjectreviews", &review); err != nil {
		return Caller{}, fmt.Errorf("asking who the caller is: %w", cluster.Bare(err))
	}
	return Caller{Name: review.Status.UserInfo.Username, Groups: review.Status.UserInfo.Groups}, nil
}

// Denied asks about each right, in a namespace where it belongs to one, and
// gives those that the caller does not have. They are asked about all at once;
// the error is the first of those that could not be asked about.
func Denied(ctx context.Context, c *cluster.Client, namespace string, rights []kube.Right) ([]kube.Right, error) {
	allowed := make([]bool, len(rights))
	failed := make([]error, len(rights))
	var asking sync.WaitGroup
	for i, right := range rights {
		asking.Go(crash.Guard(ctx, func() { allowed[i], failed[i] = may(ctx, c, namespace, right) }))
	}
	asking.Wait()
	var denied []kube.Right
	var first error // the others say the same
	for i, right := range rights {
		if !allowed[i] && failed[i] == nil {
			denied = append(denied, right)
		}
		first = cmp.Or(first, failed[i])
	}
	return denied, first
}

func may(ctx context.Context, c *cluster.Client, namespace string, right kube.Right) (bool, error) {
	if right.ClusterWide {
		namespace = ""
	}
	resource, subresource, _ := strings.Cut(right.Resource, "/")
	review := authorizationv1.SelfSubjectAccessReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SelfSubjectAccessReview"},
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: namespace, Verb: right.Verb, Group: right.Group, Version: "v1", Resource: resource, Subresource: subresource,
		}},
	}
	if err := post(ctx, c, authorizationv1.GroupName, "selfsubjectaccessreviews", &review); err != nil {
		return false, fmt.Errorf("asking for the right to %s: %w", right, cluster.Bare(err))
	}
	return review.Status.Allowed, nil
}

// post sends a review and reads the answer into it. The Client's scheme has the
// core API alone, so both are plain JSON.
func post(ctx context.Context, c *cluster.Client, group, resource string, review any) error {
	text, err := json.Marshal(review)
	if err != nil {
		return err
	}
	answer, err := c.REST().Post().AbsPath("apis", group, "v1", resource).SetHeader("Content-Type", "application/json").Body(text).Do(ctx).Raw()
	if err != nil {
		return err
	}
	return json.Unmarshal(answer, review)
}
