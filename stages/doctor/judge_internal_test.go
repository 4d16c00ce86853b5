package doctor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/socialweb-computer/tenant-executor/executor/failure"
	"github.com/socialweb-computer/tenant-executor/executor/settings"
	"github.com/socialweb-computer/tenant-executor/kube"
	"github.com/socialweb-computer/tenant-executor/kube/access"
	"github.com/socialweb-computer/tenant-executor/kube/capacity"
	"github.com/socialweb-computer/tenant-executor/kube/cluster"
	"github.com/socialweb-computer/tenant-executor/kube/reap"
	"github.com/socialweb-computer/tenant-executor/stages"
)

// file is what the system says of a file of some mode.
func file(t *testing.T, mode fs.FileMode) fs.FileInfo {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Chmod(path, mode)); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info
}

func folder(t *testing.T, mode fs.FileMode) fs.FileInfo {
	t.Helper()
	path := t.TempDir()
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info
}

func pathError(err error) error { return &fs.PathError{Op: "open", Path: "/x", Err: err} }

func TestJudgeConfiguration(t *testing.T) {
	fixed := settings.Cluster{URL: "https://127.0.0.1:1"}
	discovered := settings.Cluster{DiscoverCluster: "acme"}
	expect(t, map[string]judged{
		"file":           {judgeConfigFile("/x", file(t, 0o640), nil), OK, "mode 0640"},
		"no file":        {judgeConfigFile("/x", nil, pathError(syscall.ENOENT)), Failure, "--config"},
		"not readable":   {judgeConfigFile("/x", nil, pathError(syscall.EACCES)), Failure, "as the runner's user"},
		"a folder":       {judgeConfigFile("/x", folder(t, 0o700), nil), Failure, "not a file"},
		"group writes":   {judgeConfigFile("/x", file(t, 0o660), nil), Warning, "chmod go-w /x"},
		"fixed":          {judgeRoute(fixed, found{url: "https://127.0.0.1:1"}), OK, "loopback"},
		"mount":          {judgeRoute(discovered, found{url: "https://kcp/clusters/root"}), Failure, "kcp mount"},
		"fallen":         {judgeRoute(discovered, found{url: "https://127.0.0.1:1", fallen: errors.New("kcp is silent")}), Warning, "kcp is silent"},
		"ambiguous":      {judgeRoute(discovered, found{err: &cluster.FindError{Kind: cluster.Ambiguous, Text: "two groups"}}), Failure, "cluster.discover_resource"},
		"in cluster":     {judgeRoute(settings.Cluster{InCluster: true}, found{url: "https://10.0.0.1:443"}), Warning, "keeps a node alive"},
		"not in one":     {judgeRoute(settings.Cluster{InCluster: true}, found{err: cluster.ErrNotInCluster}), Failure, "cluster.url"},
		"helper":         {judgeHelperImage("r.test:5000/gitlab-runner-helper:x86_64-v19.4.0"), OK, "v19.4.0"},
		"helper, none":   {judgeHelperImage(""), OK, "GitLab's own of the runner's version"},
		"helper, digest": {judgeHelperImage("r/gitlab-runner-helper@sha256:0123"), OK, "sha256"},
		"helper, no tag": {judgeHelperImage("r.example.com:5000/gitlab-runner-helper"), Warning, "no version"},
		"helper, latest": {judgeHelperImage("gitlab-runner-helper:x86_64-latest"), Warning, "no version"},
		"helper, copied": {judgeHelperImage(exampleHelper()), Failure, "example's"},
	})
	wrong := fmt.Errorf("/x: %w", errors.Join(errors.New("a is wrong"), errors.Join(errors.New("b is wrong"), nil)))
	all := judgeConfigValues("/x", wrong)
	if len(all) != 2 || all[0].Evidence != "a is wrong" || all[1].Evidence != "b is wrong" {
		t.Errorf("got %+v", all)
	}
}

func certificate(name string, from, until time.Time, ca bool) *x509.Certificate {
	return &x509.Certificate{Subject: pkix.Name{CommonName: name}, NotBefore: from, NotAfter: until, IsCA: ca}
}

func TestJudgeCredentials(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	ago, soon, late := now.Add(-time.Hour), now.Add(13*24*time.Hour), now.Add(90*24*time.Hour)
	ca := func(all ...*x509.Certificate) cluster.Files { return cluster.Files{CA: all} }
	own := func(from, until time.Time) *x509.Certificate { return certificate("driver", from, until, false) }
	expect(t, map[string]judged{
		"CA":                   {judgeCA("/ca", ca(certificate("c", ago, late, true)), now), OK, "CN=c"},
		"old and new CA":       {judgeCA("/ca", ca(certificate("old", ago, ago, true), certificate("new", ago, late, true)), now), OK, "2027"},
		"CA expires":           {judgeCA("/ca", ca(certificate("c", ago, soon, true)), now), Warning, "2026-12-13"},
		"CA has expired":       {judgeCA("/ca", ca(certificate("c", ago.Add(-time.Hour), ago, true)), now), Failure, "valid from"},
		"no CA":                {judgeCA("/ca", ca(certificate("leaf", ago, late, false)), now), Warning, "not the certificate of a CA"},
		"CA cannot be read":    {judgeCA("/ca", cluster.Files{CAErr: errors.New("/ca: no such file")}, now), Failure, "/ca: no such file"},
		"key":                  {judgeKey("/key", cluster.Files{}), OK, "/key"},
		"key of all":           {judgeKey("/key", cluster.Files{KeyErr: errors.New("mode 0644")}), Failure, "mode 0644"},
		"certificate":          {judgeCertificate("/cert", cluster.Files{Client: []*x509.Certificate{own(ago, late)}}), OK, "CN=driver"},
		"certificate, no pair": {judgeCertificate("/cert", cluster.Files{PairErr: errors.New("does not match")}), Failure, "one issue"},
		"valid":                {judgeExpiry("it", own(ago, late), now), OK, "90 days"},
		"expires":              {judgeExpiry("it", own(ago, soon), now), Warning, "13 days"},
		"expires in hours":     {judgeExpiry("it", own(ago, now.Add(5*time.Hour)), now), Warning, "5 hours"},
		"exactly 14 days":      {judgeExpiry("it", own(ago, now.Add(14*24*time.Hour)), now), OK, "14 days"},
		"expired":              {judgeExpiry("it", own(ago, now.Add(-time.Second)), now), Failure, "expired on 2026-11-30"},
		"not yet":              {judgeExpiry("it", own(now.Add(time.Second), late), now), Failure, "valid from"},
	})
}

func TestJudgeServer(t *testing.T) {
	const at = "https://127.0.0.1:1"
	shown := cluster.Server{Certificate: &x509.Certificate{}}
	unknown := &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	expect(t, map[string]judged{
		"well":              {judgeServer(at, cluster.Server{Version: "v1.37.0"}, nil, nil, true), OK, "Kubernetes v1.37.0"},
		"says no version":   {judgeServer(at, shown, nil, nil, true), OK, "answers"},
		"nobody":            {judgeServer(at, cluster.Server{}, syscall.ECONNREFUSED, nil, true), Failure, "nobody listens"},
		"silence":           {judgeServer(at, cluster.Server{}, context.DeadlineExceeded, nil, true), Failure, "within 3s"},
		"another":           {judgeServer(at, cluster.Server{}, unknown, nil, true), Failure, "another cluster"},
		"why":               {judgeServer(at, shown, unknown, errors.New("the CA was replaced"), true), Failure, "the CA was replaced"},
		"nothing to show":   {judgeServer(at, shown, unknown, nil, false), OK, "wants a certificate"},
		"nobody at all":     {judgeServer(at, cluster.Server{}, syscall.ECONNREFUSED, nil, false), Failure, "nobody listens"},
		"clock":             {judgeClock(now.Add(5*time.Second), now), OK, ""},
		"clock, behind":     {judgeClock(now.Add(6*time.Second), now), Warning, "6s behind"},
		"clock, far ahead":  {judgeClock(now.Add(-6*time.Minute), now), Failure, "6m0s ahead of"},
		"clock, not told":   {judgeClock(time.Time{}, now), Skipped, ""},
		"known":             {judgeIdentity(access.Caller{Name: "driver", Groups: []string{"ci", "system:authenticated"}}, nil, nil), OK, "user driver, groups ci"},
		"too mighty":        {judgeIdentity(access.Caller{Name: "admin", Groups: []string{"system:masters"}}, nil, nil), Warning, "everything"},
		"nobody it knows":   {judgeIdentity(access.Caller{Name: "system:anonymous"}, nil, nil), Failure, "does not know"},
		"not let in":        {judgeIdentity(access.Caller{}, apierrors.NewUnauthorized("x"), nil), Failure, "does not know"},
		"not let in, why":   {judgeIdentity(access.Caller{}, apierrors.NewUnauthorized("x"), errors.New("the CA was replaced")), Failure, "the CA was replaced"},
		"old apiserver":     {judgeIdentity(access.Caller{}, apierrors.NewNotFound(schema.GroupResource{}, "x"), nil), OK, "too old"},
		"apiserver is sick": {judgeIdentity(access.Caller{}, errors.New("etcd"), nil), Failure, "etcd"},
	})
}

func TestJudgeRights(t *testing.T) {
	if got := judgeRights(nil, nil, 13, "ci"); len(got) != 1 || got[0].State != OK || got[0].Evidence != "all 13 rights, in namespace ci" {
		t.Errorf("got %+v", got)
	}
	got := judgeRights([]kube.Right{{Verb: "list", Resource: "nodes", ClusterWide: true}, {Verb: "create", Resource: "pods/exec"}}, errors.New("broken off"), 13, "ci")
	want := []string{"may not list nodes in the whole cluster", "may not create pods/exec in namespace ci", "broken off"}
	for i, text := range want {
		if len(got) != len(want) || got[i].Evidence != text || got[i].State != Failure {
			t.Fatalf("got %+v", got)
		}
	}
	got = judgeRights([]kube.Right{{Verb: "create", Resource: "pods"}}, nil, 17, "")
	if len(got) != 1 || got[0].Evidence != "may not create pods in all namespaces" || !strings.Contains(got[0].Remedy, "rbac-namespace-per-job.yaml") {
		t.Errorf("got %+v", got)
	}
	got = judgeRights([]kube.Right{{Verb: "list", Resource: "pods", ClusterWide: true, Optional: true}}, nil, 17, "ci")
	if len(got) != 1 || got[0].State != Warning || !strings.Contains(got[0].Evidence, "may not list pods in the whole cluster: ") {
		t.Errorf("got %+v", got)
	}
	pods := schema.GroupResource{Resource: "pods"}
	expect(t, map[string]judged{
		"namespace":       {judgeNamespace("ci", nil), OK, "ci"},
		"missing":         {judgeNamespace("ci", apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "ci")), Failure, "kubectl create namespace ci"},
		"policy":          {judgeNamespace("ci", apierrors.NewForbidden(pods, "x", errors.New("violates PodSecurity"))), Failure, "violates PodSecurity"},
		"quota full":      {judgeNamespace("ci", apierrors.NewForbidden(pods, "x", errors.New("exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1"))), OK, "once another one has left: quota q is used up (1 of 1 pods used)"},
		"quota too small": {judgeNamespace("ci", apierrors.NewForbidden(pods, "x", errors.New("exceeded quota: q, requested: limits.cpu=2, used: limits.cpu=0, limited: limits.cpu=1"))), Failure, "exceeded quota: q"},
		"webhook down":    {judgeNamespace("ci", apierrors.NewInternalError(errors.New(`failed calling webhook "a.b": gone`))), Failure, "a.b"},
		"no right":        {judgeNamespace("ci", apierrors.NewForbidden(pods, "", errors.New(`User "d" cannot create resource "pods"`))), Skipped, "create pods"},
		"invalid":         {judgeNamespace("ci", apierrors.NewBadRequest("limits")), Failure, "limits"},
		"one a job":       {judgeNamespace("ci", stages.ErrOwnNamespace), OK, "namespace_per_job"},
		"becomes no Pod":  {judgeNamespace("ci", failure.New(failure.Settings, "labels")), Failure, "labels"},
		"sick":            {judgeNamespace("ci", errors.New("etcd")), Failure, "etcd"},
	})
}

func TestJudgeCapacity(t *testing.T) {
	policies := func(most int, counts ...int) settings.Warm {
		w := settings.Warm{MaxPausePods: most, PausePodImage: "pause"}
		for _, n := range counts {
			w.Policies = append(w.Policies, settings.Policy{IdleCount: n})
		}
		return w
	}
	expect(t, map[string]judged{
		"nodes":          {judgeNodes(capacity.Count{Total: 2, Ready: 2}, 10, nil), OK, "2 of 10"},
		"no nodes":       {judgeNodes(capacity.Count{}, 10, nil), OK, "none at present"},
		"not ready":      {judgeNodes(capacity.Count{Total: 2, Ready: 1}, 10, nil), Warning, "1 of them not ready"},
		"above ceiling":  {judgeNodes(capacity.Count{Total: 3, Ready: 3}, 2, nil), Warning, "tenant.ceiling is 2"},
		"not told":       {judgeNodes(capacity.Count{}, 2, errors.New("broken off")), Failure, "broken off"},
		"pods-per-node":  {judgePodsPerNode(1), OK, ""},
		"unknown":        {judgePodsPerNode(0), Warning, "counts 8 Pods for a node"},
		"two":            {judgePodsPerNode(2), Failure, "SOCIALWEB_CLUSTERPROVIDER_SCALE_PODS_PER_NODE to 1"},
		"cold":           {judgeWarm(settings.Warm{}, 10), OK, "none are kept"},
		"warm":           {judgeWarm(policies(0, 1, 3), 10), OK, "up to 3 of 10"},
		"too warm":       {judgeWarm(policies(0, 10), 10), Warning, "idle_count"},
		"warm, bounded":  {judgeWarm(policies(2, 10), 10), OK, "up to 2 of 10"},
		"held after job": {judgeWarm(settings.Warm{Linger: "5m"}, 10), OK, "held for 5m"},
	})
}

func TestJudgeHost(t *testing.T) {
	left := []stages.Leftover{{Reason: reap.Expired}, {Reason: reap.Expired}, {Reason: reap.NoPod}}
	expect(t, map[string]judged{
		"folder":          {judgeState(folderFacts{path: "/s", info: folder(t, 0o700)}), OK, "mode 0700"},
		"not there yet":   {judgeState(folderFacts{path: "/s", err: pathError(syscall.ENOENT)}), OK, "the first job makes it"},
		"cannot be made":  {judgeState(folderFacts{path: "/s", err: pathError(syscall.ENOENT), writeErr: syscall.EACCES}), Warning, "install -d -m 700"},
		"for all":         {judgeState(folderFacts{path: "/s", info: folder(t, 0o777)}), Warning, "chmod 700 /s"},
		"not writable":    {judgeState(folderFacts{path: "/s", info: folder(t, 0o700), writeErr: pathError(syscall.EROFS)}), Warning, "read-only file system"},
		"shared":          {judgeState(folderFacts{path: "/s", info: folder(t, 0o700), network: "NFS"}), Warning, "is on NFS"},
		"not a folder":    {judgeState(folderFacts{path: "/s", info: file(t, 0o600)}), Warning, "not a folder"},
		"nothing left":    {judgeLeftovers([]leftoverFacts{{runner: "a"}}), OK, "none"},
		"left":            {judgeLeftovers([]leftoverFacts{{runner: "a"}, {runner: "b", found: left}}), Warning, "3 of runner b: 1 no Pod, 2 expired -> tenant-executor reap --runner b"},
		"other hosts":     {judgeLeftovers([]leftoverFacts{{runner: "a", elsewhere: map[string]int{"h2": 2, "h1": 1}}}), OK, "other hosts: 1 of host h1, 2 of host h2"},
		"cannot be found": {judgeLeftovers([]leftoverFacts{{runner: "a", err: errors.New("broken off")}}), Warning, "broken off"},
	})
}
