package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/socialweb-computer/tenant-executor/executor/failure"
	"github.com/socialweb-computer/tenant-executor/kube"
	"github.com/socialweb-computer/tenant-executor/kube/access"
	"github.com/socialweb-computer/tenant-executor/kube/admission"
	"github.com/socialweb-computer/tenant-executor/kube/cluster"
	"github.com/socialweb-computer/tenant-executor/stages"
)

// judgeServer judges the answer of an apiserver. Diagnosis is why it does not
// let the driver in, nil where nobody can tell. Presentable is whether the
// driver has a certificate to show; that it has none is told elsewhere.
func judgeServer(address string, s cluster.Server, err, diagnosis error, presentable bool) Result {
	const restart = "start the tenant cluster; if it runs, correct the port in cluster.url, or set cluster.discover_cluster to have it looked up"
	text := ""
	if err != nil {
		text = err.Error()
	}
	switch {
	case err == nil && s.Version == "":
		return ok("%s answers", address)
	case err == nil:
		return ok("%s answers, Kubernetes %s", address, s.Version)
	case s.Certificate != nil && !presentable:
		return ok("%s answers, and wants a certificate before it says more", address)
	case diagnosis != nil:
		return failed(diagnosis.Error(), "correct it; the driver reads its files again for each connection")
	case errors.Is(err, syscall.ECONNREFUSED):
		return failed("nobody listens at "+address, restart)
	case errors.Is(err, context.DeadlineExceeded):
		return failed(fmt.Sprintf("%s does not answer within %s", address, checkLimit), "look at the tenant cluster's apiserver: something listens there and says nothing")
	case s.Certificate != nil && cluster.Foreign(err):
		return failed("the apiserver does not take the driver's certificate: "+text, "have it issued by the cluster's CA, as a client certificate")
	case cluster.Foreign(err):
		return failed(text, "another cluster listens at this port, or the CA was replaced: correct the address, or put the cluster's present CA into cluster.ca_file")
	}
	return failed(text, restart)
}

// skewTolerated is how far two clocks may be apart; Date has whole seconds, and
// the answer takes a moment.
const skewTolerated = 5 * time.Second

// skewFatal is how far they may be apart before certificates of new nodes,
// which are valid from the moment of their issue on, and deadlines go wrong.
const skewFatal = 5 * time.Minute

func judgeClock(server, now time.Time) Result {
	if server.IsZero() {
		return skip("the apiserver does not tell the time")
	}
	skew := server.Sub(now).Round(time.Second)
	direction := "behind"
	if skew < 0 {
		direction = "ahead of"
	}
	evidence := fmt.Sprintf("this host's clock is %s %s the cluster's", skew.Abs(), direction)
	switch {
	case skew.Abs() > skewFatal:
		return failed(evidence, "set it right, best by NTP (chrony or systemd-timesyncd) on both")
	case skew.Abs() > skewTolerated:
		return warning(evidence, "set it right, best by NTP (chrony or systemd-timesyncd) on both")
	}
	return ok("less than %s apart", skewTolerated)
}

// anonymous is whom an apiserver takes a stranger for.
const anonymous = "system:anonymous"

func judgeIdentity(c access.Caller, err, diagnosis error) Result {
	const remedy = "have the certificate issued by the cluster's CA, for the group that examples/rbac.yaml binds"
	switch {
	case err == nil && c.Name != anonymous:
		groups := slices.DeleteFunc(slices.Clone(c.Groups), func(g string) bool { return g == "system:authenticated" })
		if slices.Contains(groups, "system:masters") {
			return warning(fmt.Sprintf("user %s of group system:masters, who may do everything", c.Name), "give the driver a certificate of its own, with the group of examples/rbac.yaml")
		}
		if len(groups) == 0 {
			return ok("user %s", c.Name)
		}
		return ok("user %s, groups %s", c.Name, strings.Join(groups, ", "))
	case apierrors.IsNotFound(err):
		return ok("the cluster lets the driver in; it is too old to say as whom")
	case diagnosis != nil:
		return failed(diagnosis.Error(), remedy)
	case err == nil || cluster.Foreign(err):
		return failed("the cluster does not know the driver's certificate", remedy)
	}
	return failed(err.Error(), "look at the tenant cluster's apiserver and its log")
}

// judgeRights judges the rights in a namespace, "" for all namespaces.
func judgeRights(denied []kube.Right, err error, asked int, namespace string) []Result {
	remedy := "apply examples/rbac.yaml, with this namespace, and the group or user that the check identity names"
	everywhere := "in namespace " + namespace
	if namespace == "" {
		everywhere = "in all namespaces"
		remedy = "apply examples/rbac-namespace-per-job.yaml beside examples/rbac.yaml, with the group or user that the check identity names"
	}
	var all []Result
	for _, right := range denied {
		where := everywhere
		if right.ClusterWide {
			where = "in the whole cluster"
		}
		if right.Optional {
			all = append(all, warning(fmt.Sprintf("may not %s %s: what a job waits for is told by the jobs of its own namespace, and ps -A shows nothing", right, where), remedy))
			continue
		}
		all = append(all, failed(fmt.Sprintf("may not %s %s", right, where), remedy))
	}
	switch {
	case err != nil:
		return append(all, failed(err.Error(), "look at the tenant cluster's apiserver and its log"))
	case len(all) == 0:
		return []Result{ok("all %d rights, %s", asked, everywhere)}
	}
	return all
}

// judgeNamespace judges the cluster's answer to a Pod that is not made.
func judgeNamespace(namespace string, err error) Result {
	var f *failure.Failure
	refused := admission.Of(err)
	switch {
	case err == nil:
		return ok("%s, and the cluster would take a job's Pod", namespace)
	case errors.Is(err, stages.ErrOwnNamespace):
		return ok("%v (kubernetes.namespace_per_job)", err)
	case errors.As(err, &f):
		return failed(f.Error(), f.Remedy())
	case apierrors.IsNotFound(err):
		return failed(err.Error(), "create it (kubectl create namespace "+namespace+"), or correct kubernetes.namespace")
	case refused != nil && refused.Kind == admission.QuotaFull:
		return ok("%s, and the cluster takes a job's Pod once another one has left: quota %s is used up (%s)", namespace, refused.Quotas[0].Name, refused.Quotas[0])
	case refused != nil && refused.Kind == admission.WebhookDown:
		return failed(err.Error(), "look at what answers for admission webhook "+refused.Webhook+": the cluster takes no Pod without its word")
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), " cannot "):
		return skip("it takes the right to create pods")
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return failed("the cluster would not take a job's Pod: "+err.Error(), "change the setting of [kubernetes] that it names, or the namespace's quota or policy")
	}
	return failed(err.Error(), "look at the tenant cluster's apiserver and its log")
}
