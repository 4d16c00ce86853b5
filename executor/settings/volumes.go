package settings

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Storage is what the containers share beside the job's own folders.
type Storage struct {
	Volumes Volumes `toml:"volumes" doc:"Volumes that every container of the Pod has. One that is mounted exactly at job.builds_dir or job.cache_dir takes the place of the Pod's own."`
}

// Volumes are volumes by their kinds. Every mount_path and sub_path may name
// variables of the job.
type Volumes struct {
	HostPaths  []HostPath  `toml:"host_path" doc:"Folders of the node. They are gone with the node, and a job can reach the node through them."`
	PVCs       []PVC       `toml:"pvc" doc:"Persistent volume claims."`
	ConfigMaps []ConfigMap `toml:"config_map" doc:"ConfigMaps of the namespace."`
	Secrets    []SecretMap `toml:"secret" doc:"Secrets of the namespace."`
	EmptyDirs  []EmptyDir  `toml:"empty_dir" doc:"Folders that are there for as long as the Pod is."`
	CSIs       []CSI       `toml:"csi" doc:"Volumes that a CSI driver makes for the Pod."`
	NFSs       []NFS       `toml:"nfs" doc:"Folders of NFS servers."`
}

// HostPath is a folder of the node.
type HostPath struct {
	Name        string  `toml:"name" example:"ccache" doc:"Name of the volume. Required."`
	MountPath   string  `toml:"mount_path" example:"/ccache" doc:"Folder in the containers; variables of the job are put in. Required."`
	SubPath     string  `toml:"sub_path" example:"$CI_PROJECT_PATH" doc:"Folder of the volume to take in place of the whole; variables of the job are put in."`
	ReadOnly    bool    `toml:"read_only" example:"true" doc:"Whether containers can only read it."`
	HostPath    string  `toml:"host_path" example:"/var/cache/ccache" doc:"Folder of the node. Without it that of mount_path, as it is written."`
	Propagation *string `toml:"mount_propagation" example:"HostToContainer" doc:"None, HostToContainer or Bidirectional: whether mounts that are made later show on the other side."`
}

// PVC is a persistent volume claim.
type PVC struct {
	Name        string  `toml:"name" example:"maven-$CI_CONCURRENT_ID" doc:"Name of the claim; variables of the job are put in. Required."`
	MountPath   string  `toml:"mount_path" example:"/maven" doc:"As for host_path. Required."`
	SubPath     string  `toml:"sub_path" example:"repository" doc:"As for host_path."`
	ReadOnly    bool    `toml:"read_only" example:"false" doc:"As for host_path."`
	Propagation *string `toml:"mount_propagation" example:"None" doc:"As for host_path."`
}

// ConfigMap is a ConfigMap as files.
type ConfigMap struct {
	Name      string            `toml:"name" example:"ci-settings" doc:"Name of the ConfigMap. Required."`
	MountPath string            `toml:"mount_path" example:"/etc/ci" doc:"As for host_path. Required."`
	SubPath   string            `toml:"sub_path" example:"settings" doc:"As for host_path."`
	ReadOnly  bool              `toml:"read_only" example:"true" doc:"As for host_path."`
	Items     map[string]string `toml:"items" example:"config=config.yaml" doc:"Keys to take, and the files that they become. Without it all are taken."`
}

// SecretMap is a Secret as files.
type SecretMap struct {
	Name      string            `toml:"name" example:"ci-keys" doc:"Name of the Secret. Required."`
	MountPath string            `toml:"mount_path" example:"/etc/keys" doc:"As for host_path. Required."`
	SubPath   string            `toml:"sub_path" example:"keys" doc:"As for host_path."`
	ReadOnly  bool              `toml:"read_only" example:"true" doc:"As for host_path."`
	Items     map[string]string `toml:"items" example:"key=id_ed25519" doc:"As for config_map."`
}

// EmptyDir is a folder of the Pod.
type EmptyDir struct {
	Name        string  `toml:"name" example:"scratch" doc:"Name of the volume. Required."`
	MountPath   string  `toml:"mount_path" example:"/scratch" doc:"As for host_path. Required."`
	SubPath     string  `toml:"sub_path" example:"work" doc:"As for host_path."`
	Medium      string  `toml:"medium" example:"Memory" doc:"Memory for a folder in memory, which counts as the containers' own. Without it it is on the node's disk."`
	SizeLimit   string  `toml:"size_limit" example:"1Gi" doc:"Size at which the Pod is evicted."`
	Propagation *string `toml:"mount_propagation" example:"None" doc:"As for host_path."`
}

// CSI is a volume of a CSI driver.
type CSI struct {
	Name       string            `toml:"name" example:"vault" doc:"Name of the volume. Required."`
	MountPath  string            `toml:"mount_path" example:"/vault" doc:"As for host_path. Required."`
	SubPath    string            `toml:"sub_path" example:"ci" doc:"As for host_path."`
	Driver     string            `toml:"driver" example:"secrets-store.csi.k8s.io" doc:"Name of the CSI driver. Required."`
	FSType     string            `toml:"fs_type" example:"ext4" doc:"Filesystem. Without it the driver decides."`
	ReadOnly   bool              `toml:"read_only" example:"true" doc:"As for host_path."`
	Attributes map[string]string `toml:"volume_attributes" example:"secretProviderClass=ci" doc:"Attributes for the CSI driver."`
}

// NFS is a folder of an NFS server.
type NFS struct {
	Name      string `toml:"name" example:"datasets" doc:"Name of the volume. Required."`
	MountPath string `toml:"mount_path" example:"/datasets" doc:"As for host_path. Required."`
	SubPath   string `toml:"sub_path" example:"2026" doc:"As for host_path."`
	Server    string `toml:"server" example:"nfs.example.com" doc:"The server. Required."`
	Path      string `toml:"path" example:"/export/datasets" doc:"Folder that the server exports. Required."`
	ReadOnly  bool   `toml:"read_only" example:"true" doc:"As for host_path."`
}

// mount is what the kinds have in common.
type mount struct {
	kind, name, path, subPath string
	propagation               *string
}

func (v Volumes) mounts() []mount {
	var all []mount
	for _, m := range v.HostPaths {
		all = append(all, mount{"host_path", m.Name, m.MountPath, m.SubPath, m.Propagation})
	}
	for _, m := range v.PVCs {
		all = append(all, mount{"pvc", m.Name, m.MountPath, m.SubPath, m.Propagation})
	}
	for _, m := range v.ConfigMaps {
		all = append(all, mount{"config_map", m.Name, m.MountPath, m.SubPath, nil})
	}
	for _, m := range v.Secrets {
		all = append(all, mount{"secret", m.Name, m.MountPath, m.SubPath, nil})
	}
	for _, m := range v.EmptyDirs {
		all = append(all, mount{"empty_dir", m.Name, m.MountPath, m.SubPath, m.Propagation})
	}
	for _, m := range v.CSIs {
		all = append(all, mount{"csi", m.Name, m.MountPath, m.SubPath, nil})
	}
	for _, m := range v.NFSs {
		all = append(all, mount{"nfs", m.Name, m.MountPath, m.SubPath, nil})
	}
	return all
}

func (s Storage) check() []error {
	var all []error
	for _, m := range s.Volumes.mounts() {
		all = append(all, m.check())
	}
	v := s.Volumes
	for _, e := range v.EmptyDirs {
		_, err := quantity("kubernetes.volumes.empty_dir "+e.Name+": size_limit", strings.TrimSpace(e.SizeLimit))
		all = append(all, err)
	}
	for _, h := range v.HostPaths {
		if h.HostPath != "" {
			all = append(all, absolute("kubernetes.volumes.host_path "+h.Name+": host_path", h.HostPath))
		} else if strings.Contains(h.MountPath, "$") {
			all = append(all, fmt.Errorf("kubernetes.volumes.host_path %s: host_path is not set, and mount_path is %q: a job's variables do not choose a folder of the node", h.Name, h.MountPath))
		}
	}
	for _, c := range v.CSIs {
		if c.Driver == "" {
			all = append(all, fmt.Errorf("kubernetes.volumes.csi %s: driver is not set", c.Name))
		}
	}
	for _, n := range v.NFSs {
		if n.Server == "" {
			all = append(all, fmt.Errorf("kubernetes.volumes.nfs %s: server is not set", n.Name))
		}
		all = append(all, absolute("kubernetes.volumes.nfs "+n.Name+": path", n.Path))
	}
	return all
}

func (m mount) check() error {
	key := "kubernetes.volumes." + m.kind
	if m.name == "" {
		return fmt.Errorf("%s has an entry without a name", key)
	}
	key += " " + m.name
	var all []error
	problems := validation.IsDNS1123Label(m.name)
	if m.kind == "pvc" {
		problems = validation.IsDNS1123Subdomain(m.name)
	}
	if len(problems) > 0 && !(m.kind == "pvc" && strings.Contains(m.name, "$")) {
		all = append(all, fmt.Errorf("%s: the name cannot be that of a volume: %s", key, strings.Join(problems, "; ")))
	}
	if m.path == "" || !path.IsAbs(m.path) && !strings.HasPrefix(m.path, "$") || path.Clean(m.path) == "/" {
		all = append(all, fmt.Errorf("%s: mount_path is %q: write a folder's whole path", key, m.path))
	}
	if slices.Contains(strings.Split(m.subPath, "/"), "..") || path.IsAbs(m.subPath) {
		all = append(all, fmt.Errorf("%s: sub_path is %q: write a path inside the volume, without \"..\" in it", key, m.subPath))
	}
	if m.propagation != nil && !slices.Contains([]string{"None", "HostToContainer", "Bidirectional"}, *m.propagation) {
		all = append(all, fmt.Errorf("%s: mount_propagation is %q: use None, HostToContainer or Bidirectional", key, *m.propagation))
	}
	return errors.Join(all...)
}
