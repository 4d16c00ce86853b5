package cluster

import (
	"errors"
	"net"
	"path/filepath"
)

// serviceAccountFolder is where the kubelet puts the service account of a Pod.
const serviceAccountFolder = "/var/run/secrets/kubernetes.io/serviceaccount"

// ErrNotInCluster says that the process does not run in a Pod.
var ErrNotInCluster = errors.New("this process does not run in a Pod of the cluster: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set")

// InCluster is the cluster that the Pod belongs to in which this process runs,
// asked as the Pod's service account. Env is the process's environment. It is
// rest.InClusterConfig, with an environment that is handed in.
func InCluster(env map[string]string) (Config, error) {
	host, port := env["KUBERNETES_SERVICE_HOST"], env["KUBERNETES_SERVICE_PORT"]
	if host == "" || port == "" {
		return Config{}, ErrNotInCluster
	}
	return Config{
		URL:       "https://" + net.JoinHostPort(host, port),
		CAFile:    filepath.Join(serviceAccountFolder, "ca.crt"),
		TokenFile: filepath.Join(serviceAccountFolder, "token"),
	}, nil
}
