package main

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"strings"

	"gitlab.com/gitlab-org/gitlab-runner/executors/custom/api"

	"github.com/socialweb-computer/tenant-executor/stages"
	"github.com/socialweb-computer/tenant-executor/stages/course"
	"github.com/socialweb-computer/tenant-executor/stages/owner"
	"github.com/socialweb-computer/tenant-executor/stages/state"
)

// machineIDFile is the id of an installation (machine-id(5)).
const machineIDFile = "/etc/machine-id"

// hostFile is the state file with what tells this host from others that were
// made from one image.
const hostFile = "host"

// host looks at this host. Nothing of it is worth a failed job: without a
// state folder nobody is proven dead.
func (a *app) host(folder *state.Folder) stages.Host {
	id, err := hostID(folder)
	if err != nil {
		return stages.Host{}
	}
	return a.hostWith(id)
}

// look opens the book of one who only reads, nil where there is none. What the
// host knows of the attempts' owners is in what it reads.
func (a *app) look(dir string) (*course.Book, error) {
	book, err := course.Look(dir)
	if err != nil || book == nil {
		return nil, err
	}
	if folder, err := state.Open(dir); err == nil {
		// Never made here: it would be another user's than the runner's.
		if id, err := folder.ReadFile(hostFile); err == nil {
			book.Judge(a.hostWith(strings.TrimSpace(string(id))).Over)
		}
	}
	return book, nil
}

// hostWith is this host by its id.
func (a *app) hostWith(id string) stages.Host {
	var h stages.Host
	hostname, err := os.Hostname()
	if err != nil {
		return h
	}
	machine, _ := os.ReadFile(machineIDFile) // containers often have none
	h.Machine = owner.System(owner.Identify(strings.TrimSpace(string(machine)), hostname, id), hostname)
	// By hand there is no runner: a shell that ends does not end the job.
	if found, err := h.Machine.Find(a.pid, api.JobResponseFileVariable, a.environment.ResponseFile()); err == nil {
		h.Owner = &found
	}
	return h
}

// hostID reads the host's id, or makes it. Of several processes that make it
// at once, one wins.
func hostID(folder *state.Folder) (string, error) {
	text, err := folder.ReadFile(hostFile)
	if errors.Is(err, fs.ErrNotExist) {
		err = folder.Create(hostFile, []byte(rand.Text()+"\n"))
		if err == nil || errors.Is(err, fs.ErrExist) {
			text, err = folder.ReadFile(hostFile)
		}
	}
	return strings.TrimSpace(string(text)), err
}
