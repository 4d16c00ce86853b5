package pod

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/socialweb-computer/tenant-executor/executor/failure"
	"github.com/socialweb-computer/tenant-executor/executor/job"
	"github.com/socialweb-computer/tenant-executor/executor/settings"
)

// Names of the Pod's own volumes. That of the builds is the kubernetes
// executor's (executors/kubernetes/kubernetes.go, getVolumes): patches of
// pod_spec are written against it.
const (
	buildsVolume = "repo"
	cacheVolume  = "tenant-executor-cache"
	driverVolume = "tenant-executor"
)

// storage gives every container the volumes of the settings and the one of the
// builds; build and helper, in which stages run, have the Pod's others as well.
// At a folder that a volume of the settings takes, the Pod has none of its own.
// It comes after every step that adds containers.
func (b *builder) storage() error {
	found, err := volumesOf(b.Settings.Volumes, b.expand)
	if err != nil {
		return err
	}
	if err := b.keepOwnFolder(found); err != nil {
		return err
	}
	var shared, stages []corev1.VolumeMount
	for _, own := range []struct {
		volume, folder string
		mounts         *[]corev1.VolumeMount
	}{{buildsVolume, b.BuildsDir, &shared}, {cacheVolume, b.CacheDir, &stages}, {driverVolume, b.Folder, &stages}} {
		b.without(own.volume)
		if found.at(own.folder) < 0 {
			b.Pod.Spec.Volumes = append(b.Pod.Spec.Volumes, scratch(own.volume))
			*own.mounts = append(*own.mounts, corev1.VolumeMount{Name: own.volume, MountPath: own.folder})
		}
	}
	for _, v := range found.volumes {
		if slices.ContainsFunc(b.Pod.Spec.Volumes, func(o corev1.Volume) bool { return o.Name == v.Name }) {
			return failure.New(failure.Settings, "kubernetes.volumes has a volume named %q, which is the name of one of the Pod's own", v.Name)
		}
		b.Pod.Spec.Volumes = append(b.Pod.Spec.Volumes, v)
	}
	shared = append(shared, found.mounts...)
	for i := range b.Pod.Spec.Containers {
		c := &b.Pod.Spec.Containers[i]
		if c.Name == string(job.Build) || c.Name == string(job.Helper) {
			c.VolumeMounts = append(c.VolumeMounts, stages...)
		}
		c.VolumeMounts = append(c.VolumeMounts, shared...)
	}
	return nil
}

// keepOwnFolder refuses volumes in, at or around the driver's folder.
func (b *builder) keepOwnFolder(found *volumes) error {
	for i, m := range found.mounts {
		if inside(m.MountPath, b.Folder) || inside(b.Folder, m.MountPath) {
			return failure.New(found.blame(i), "volume %s is to be mounted at %s, where the driver keeps its own folder %s", m.Name, m.MountPath, b.Folder)
		}
	}
	return nil
}

// without takes a volume that another step has added out again.
func (b *builder) without(volume string) {
	spec := &b.Pod.Spec
	spec.Volumes = slices.DeleteFunc(spec.Volumes, func(v corev1.Volume) bool { return v.Name == volume })
	for i := range spec.Containers {
		c := &spec.Containers[i]
		c.VolumeMounts = slices.DeleteFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == volume })
	}
}

// SharedBuilds says whether jobs share the folder of the builds: a volume of
// the settings is mounted there that outlives the Pod. The runner then puts
// the slot of the job into the path
// (executors/kubernetes/kubernetes.go, isSharedBuildsDirRequired).
func SharedBuilds(s settings.Kubernetes, j job.Job, variables job.Environment, buildsDir string) (bool, error) {
	found, err := volumesOf(s.Volumes, Plan{Job: j, Variables: variables}.expand)
	if err != nil {
		return false, err
	}
	i := found.at(buildsDir)
	if i < 0 {
		return false, nil
	}
	name := found.mounts[i].Name
	return !slices.ContainsFunc(found.volumes, func(v corev1.Volume) bool { return v.Name == name && v.EmptyDir != nil }), nil
}

func scratch(name string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}
}

// inside says whether a folder is another, or in it.
func inside(folder, other string) bool {
	folder, other = path.Clean(folder), path.Clean(other)
	return folder == other || strings.HasPrefix(folder, strings.TrimSuffix(other, "/")+"/")
}

// volumes are the volumes of the settings with the job's variables put in.
type volumes struct {
	expand  func(text string) string
	volumes []corev1.Volume
	mounts  []corev1.VolumeMount
	// byJob says of each mount whether variables of the job stand in it.
	byJob []bool
	err   error
}

func volumesOf(s settings.Volumes, expand func(text string) string) (*volumes, error) {
	v := &volumes{expand: expand}
	for _, m := range s.HostPaths {
		folder := m.HostPath
		if folder == "" {
			// As files of GitLab Runner 9.3 have it.
			folder = m.MountPath
		}
		v.add(m.Name, m.MountPath, m.SubPath, m.ReadOnly, m.Propagation, corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: folder}})
	}
	for _, m := range s.Secrets {
		v.add(m.Name, m.MountPath, m.SubPath, m.ReadOnly, nil, corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: m.Name, Items: items(m.Items)}})
	}
	for _, m := range s.PVCs {
		claim := expand(m.Name)
		name := claim
		if len(validation.IsDNS1123Label(claim)) > 0 && len(validation.IsDNS1123Subdomain(claim)) == 0 {
			// Claims may have longer names than volumes, with dots.
			sum := sha256.Sum256([]byte(claim))
			name = "pvc-" + hex.EncodeToString(sum[:])[:hashLength]
		}
		v.add(name, m.MountPath, m.SubPath, m.ReadOnly, m.Propagation, corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}})
	}
	for _, m := range s.ConfigMaps {
		v.add(m.Name, m.MountPath, m.SubPath, m.ReadOnly, nil, corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: m.Name}, Items: items(m.Items)}})
	}
	for _, m := range s.EmptyDirs {
		source := &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMedium(m.Medium)}
		if size := strings.TrimSpace(m.SizeLimit); size != "" {
			limit, err := resource.ParseQuantity(size)
			if err != nil {
				return nil, failure.Wrap(failure.Settings, err, "size_limit of the empty_dir %s", m.Name)
			}
			source.SizeLimit = &limit
		}
		v.add(m.Name, m.MountPath, m.SubPath, false, m.Propagation, corev1.VolumeSource{EmptyDir: source})
	}
	for _, m := range s.CSIs {
		v.add(m.Name, m.MountPath, m.SubPath, m.ReadOnly, nil, corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{
			Driver: m.Driver, FSType: present(m.FSType), ReadOnly: &m.ReadOnly, VolumeAttributes: m.Attributes}})
	}
	for _, m := range s.NFSs {
		v.add(m.Name, m.MountPath, m.SubPath, m.ReadOnly, nil, corev1.VolumeSource{NFS: &corev1.NFSVolumeSource{Server: m.Server, Path: m.Path, ReadOnly: m.ReadOnly}})
	}
	return v, v.err
}

// add adds a mount, and its volume unless that is there already: one volume may
// be mounted at several folders.
func (v *volumes) add(name, folder, sub string, readOnly bool, propagation *string, source corev1.VolumeSource) {
	m := corev1.VolumeMount{
		Name: name, MountPath: v.expand(folder), SubPath: v.expand(sub),
		ReadOnly: readOnly, MountPropagation: (*corev1.MountPropagationMode)(propagation),
	}
	v.byJob = append(v.byJob, m.MountPath != folder || m.SubPath != sub)
	v.mounts = append(v.mounts, m)
	switch at := slices.IndexFunc(v.volumes, func(o corev1.Volume) bool { return o.Name == name }); {
	case v.err != nil:
	case len(validation.IsDNS1123Label(name)) > 0:
		v.err = failure.New(failure.JobInvalid, "kubernetes.volumes makes %q the name of a volume with the job's variables, which it cannot be", name)
	case !path.IsAbs(m.MountPath), path.Clean(m.MountPath) == "/", strings.Contains(m.MountPath, ":"):
		v.err = failure.New(v.blame(len(v.mounts)-1), "kubernetes.volumes mounts %s at %q: it has to be a folder's whole path", name, m.MountPath)
	case path.IsAbs(m.SubPath), slices.Contains(strings.Split(m.SubPath, "/"), ".."):
		v.err = failure.New(v.blame(len(v.mounts)-1), "kubernetes.volumes takes %q of %s: it has to be a path inside the volume, without ..", m.SubPath, name)
	case at < 0:
		v.volumes = append(v.volumes, corev1.Volume{Name: name, VolumeSource: source})
	case !reflect.DeepEqual(v.volumes[at].VolumeSource, source):
		v.err = failure.New(failure.Settings, "kubernetes.volumes has two volumes named %q", name)
	}
}

// at is the mount at exactly this folder, -1 for none.
func (v *volumes) at(folder string) int {
	return slices.IndexFunc(v.mounts, func(m corev1.VolumeMount) bool { return path.Clean(m.MountPath) == path.Clean(folder) })
}

// blame is whose fault a mount is: the job's where its variables made it.
func (v *volumes) blame(i int) failure.Cause {
	if v.byJob[i] {
		return failure.JobInvalid
	}
	return failure.Settings
}

func items(files map[string]string) []corev1.KeyToPath {
	var all []corev1.KeyToPath
	for _, key := range slices.Sorted(maps.Keys(files)) {
		all = append(all, corev1.KeyToPath{Key: key, Path: files[key]})
	}
	return all
}
