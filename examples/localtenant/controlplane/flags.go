package controlplane

import (
	"fmt"
	"net/netip"

	"github.com/socialweb-computer/tenant-executor/examples/localtenant/tenant"
)

// The names of the components.
const (
	etcd              = "etcd"
	apiserver         = "kube-apiserver"
	kcpServer         = "kcp"
	controllerManager = "kube-controller-manager"
	scheduler         = "kube-scheduler"
)

// program is the name by which the components binary knows a component.
func program(component string) string {
	if component == kcpServer {
		return "generic-controlplane"
	}
	return component
}

// doorPort is the port at the bridge address that leads to the apiserver. The
// address is the tenant's alone, so the port can be Kubernetes' usual one.
const doorPort = "6443"

// auditPolicy counts the driver's requests: one record with the stage
// ResponseComplete for each, and one more with ResponseStarted for a watch or
// an exec. No request of another user is recorded.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  users: [` + DriverName + `]
- level: None
`

func etcdFlags(t tenant.Tenant, clientPort, peerPort int) []string {
	client := fmt.Sprintf("http://127.0.0.1:%d", clientPort)
	peer := fmt.Sprintf("http://127.0.0.1:%d", peerPort)
	return []string{
		"--name=" + t.Name(),
		"--data-dir=" + t.EtcdDir(),
		"--listen-client-urls=" + client,
		"--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer,
		"--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=" + t.Name() + "=" + peer,
		// The data is thrown away with the tenant: waiting for the disk buys
		// nothing.
		"--unsafe-no-fsync",
		"--log-level=warn",
	}
}

func apiserverFlags(t tenant.Tenant, keys *Keys, host netip.Addr, services netip.Prefix, port, etcdPort int, policy string) []string {
	return []string{
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", port),
		"--advertise-address=" + host.String(),
		// Nothing translates service addresses in this cluster, so the
		// kubernetes service needs no endpoints.
		"--endpoint-reconciler-type=none",
		fmt.Sprintf("--etcd-servers=http://127.0.0.1:%d", etcdPort),
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--allow-privileged=true",
		"--client-ca-file=" + keys.file("client-ca.crt"),
		"--tls-cert-file=" + keys.file("apiserver.crt"),
		"--tls-private-key-file=" + keys.file("apiserver.key"),
		"--kubelet-certificate-authority=" + keys.file("ca.crt"),
		"--kubelet-client-certificate=" + keys.file("kubelet-client.crt"),
		"--kubelet-client-key=" + keys.file("kubelet-client.key"),
		"--kubelet-preferred-address-types=InternalIP",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + keys.file("service-account.pub"),
		"--service-account-signing-key-file=" + keys.file("service-account.key"),
		"--service-cluster-ip-range=" + services.String(),
		"--audit-policy-file=" + policy,
		"--audit-log-path=" + t.AuditLog(),
	}
}

// kcpFlags are those of the kcp side: an apiserver of its own, with its own
// authority and its own part of etcd, which nothing connects to the tenant's.
func kcpFlags(keys *Keys, t tenant.Tenant, host netip.Addr, port, etcdPort int) []string {
	return []string{
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", port),
		"--advertise-address=" + host.String(),
		fmt.Sprintf("--etcd-servers=http://127.0.0.1:%d", etcdPort),
		"--etcd-prefix=/kcp",
		"--authorization-mode=RBAC",
		"--client-ca-file=" + t.KCPAuthority(),
		"--tls-cert-file=" + keys.file("kcp.crt"),
		"--tls-private-key-file=" + keys.file("kcp.key"),
		"--service-account-issuer=https://kcp.localtenant",
		"--service-account-key-file=" + keys.file("kcp-service-account.pub"),
		"--service-account-signing-key-file=" + keys.file("kcp-service-account.key"),
	}
}

func controllerManagerFlags(keys *Keys) []string {
	return []string{
		"--kubeconfig=" + keys.file(controllerManager+".kubeconfig"),
		// Nobody asks it anything: it serves nothing.
		"--secure-port=0",
		"--use-service-account-credentials=true",
		// Each controller asks for a token of its own at the start: at the
		// default of 20 requests a second that takes 5 seconds.
		"--kube-api-qps=200",
		"--kube-api-burst=400",
		"--allocate-node-cidrs=false",
		"--leader-elect=false",
		// A dead node shows after 12 seconds rather than 50, so that tests
		// of it do not take minutes.
		"--node-monitor-period=1s",
		"--node-monitor-grace-period=12s",
		"--terminated-pod-gc-threshold=200",
		"--root-ca-file=" + keys.file("ca.crt"),
		"--service-account-private-key-file=" + keys.file("service-account.key"),
	}
}

func schedulerFlags(keys *Keys) []string {
	return []string{
		"--kubeconfig=" + keys.file(scheduler+".kubeconfig"),
		"--secure-port=0",
		"--leader-elect=false",
	}
}
