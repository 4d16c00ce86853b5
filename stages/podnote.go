package stages

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/types"

	"github.com/socialweb-computer/tenant-executor/kube/pods"
	"github.com/socialweb-computer/tenant-executor/stages/atomicfile"
	"github.com/socialweb-computer/tenant-executor/stages/state"
)

// podNote is where prepare writes down which Pod it has made, so that the
// stages that follow know the very Pod: a name alone may by then belong to
// another. Cleanup removes it before it deletes the Pod, so that a prepare which
// still waits knows that nobody wants the Pod any more.
//
// It is a file in the folder that the runner makes for each attempt at a job,
// see bookmark; by hand, in the state folder.
type podNote struct {
	// beside is the file's path in the runner's folder, "" by hand.
	beside string
	folder *state.Folder
	// job is the job's key.
	job string
}

// notedPod is the content of a podNote.
type notedPod struct {
	// Job is the key of the job, since one folder may serve several by hand.
	Job       string    `json:"job"`
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	UID       types.UID `json:"uid"`
	// Ready is whether prepare has readied the Pod for stages.
	Ready bool `json:"ready"`
}

func (n notedPod) ref() pods.Ref {
	return pods.Ref{Namespace: n.Namespace, Name: n.Name, UID: n.UID}
}

// podNoteName is the file's name in the runner's folder; in the state folder it
// begins it.
const podNoteName = "tenant-executor-pod"

func (d *Driver) podNote() podNote {
	n := podNote{folder: d.state, job: d.job.Key()}
	if beside := d.variables.ExitCodeFile(); beside != "" {
		n.beside = filepath.Join(filepath.Dir(beside), podNoteName)
	}
	return n
}

// write replaces the note as a whole.
func (n podNote) write(ref pods.Ref, ready bool) error {
	text, err := json.Marshal(notedPod{Job: n.job, Namespace: ref.Namespace, Name: ref.Name, UID: ref.UID, Ready: ready})
	switch {
	case err != nil:
	case n.beside == "":
		err = n.folder.WriteLight(n.name(), text)
	default:
		err = atomicfile.File{Path: n.beside, Mode: 0o600}.Write(text)
	}
	if err != nil {
		return fmt.Errorf("writing down which Pod the job has: %w", err)
	}
	return nil
}

// read gives the Pod, nil where none is written down for this job. What cannot
// be read counts as nothing.
func (n podNote) read() *notedPod {
	var text []byte
	var err error
	if n.beside == "" {
		text, err = n.folder.ReadFile(n.name())
	} else {
		text, err = os.ReadFile(n.beside)
	}
	var found notedPod
	if err != nil || json.Unmarshal(text, &found) != nil || found.Job != n.job || found.Name == "" || found.UID == "" {
		return nil
	}
	return &found
}

// remove forgets the Pod.
func (n podNote) remove() {
	// One that cannot be removed names a Pod that is gone, and is found out.
	if n.beside == "" {
		_ = n.folder.Remove(n.name())
	} else {
		_ = os.Remove(n.beside)
	}
}

func (n podNote) name() string { return podNoteName + "-" + n.job }
