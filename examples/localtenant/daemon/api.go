package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/socialweb-computer/tenant-executor/examples/localtenant/controlplane"
	"github.com/socialweb-computer/tenant-executor/examples/localtenant/faults"
	"github.com/socialweb-computer/tenant-executor/examples/localtenant/gateway"
	"github.com/socialweb-computer/tenant-executor/examples/localtenant/node"
	"github.com/socialweb-computer/tenant-executor/examples/localtenant/registry"
)

// The paths of the daemon's API on its socket.
const (
	pathStart     = "/v1/start"
	pathStatus    = "/v1/status"
	pathNodes     = "/v1/nodes"
	pathGateway   = "/v1/gateway"
	pathAPIServer = "/v1/apiserver"
	pathRegistry  = "/v1/registry"
	pathKCP       = "/v1/kcp"
	pathFaults    = "/v1/faults"
)

// AddNode asks for a node.
type AddNode struct {
	// Name is empty for a fresh one.
	Name string `json:"name"`
	// Wait says whether to answer only when the node is ready.
	Wait bool `json:"wait"`
}

// ServerPort says which port a server gets; 0 is a free one.
type ServerPort struct {
	Port int `json:"port"`
	// Same keeps the port that it had.
	Same bool `json:"same"`
	// NewAuthority has the apiserver come back with other certificates. The kcp
	// side keeps its own.
	NewAuthority bool `json:"newAuthority,omitempty"`
}

// failure is the body of an answer that is an error.
type failure struct {
	Error string `json:"error"`
}

func (d *Daemon) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+pathStart, d.getStart)
	mux.HandleFunc("GET "+pathStatus, func(w http.ResponseWriter, _ *http.Request) { reply(w, d.status(), nil) })
	for pattern, handle := range map[string]func(*http.Request) (any, error){
		"POST " + pathNodes:                    d.addNode,
		"DELETE " + pathNodes + "/{name}":      d.removeNode,
		"POST " + pathNodes + "/{name}/{verb}": d.changeNode,
		"POST " + pathAPIServer + "/{verb}":    d.changeAPIServer,
		"PATCH " + pathGateway:                 d.setGateway,
		"PATCH " + pathRegistry:                d.setRegistry,
		"POST " + pathKCP + "/{verb}":          d.changeKCP,
		"PATCH " + pathFaults:                  d.setFaults,
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			if !d.progress.isReady() {
				reply(w, nil, errStarting)
				return
			}
			answer, err := handle(r)
			reply(w, answer, err)
		})
	}
	return mux
}

// getStart tells the steps of the start as they are done.
func (d *Daemon) getStart(w http.ResponseWriter, r *http.Request) {
	encoder, control := json.NewEncoder(w), http.NewResponseController(w)
	err := d.progress.follow(r.Context(), func(step Step) error {
		if err := encoder.Encode(step); err != nil {
			return err
		}
		return control.Flush()
	})
	if err != nil {
		d.log.Debug("a reader of the start has left", "error", err)
	}
}

func (d *Daemon) addNode(r *http.Request) (any, error) {
	var request AddNode
	if err := decode(r, &request); err != nil {
		return nil, err
	}
	name, err := d.nodes.Boot(r.Context(), request.Name)
	if err != nil {
		return nil, err
	}
	if request.Wait {
		err = d.awaitNode(r.Context(), name)
	}
	status, _ := d.node(name)
	return status, err
}

// awaitNode waits until a node is ready, and fails when it no longer can be.
func (d *Daemon) awaitNode(ctx context.Context, name string) error {
	for {
		change := d.change.wait()
		status, found := d.node(name)
		switch {
		case !found || status.State == node.Removing:
			return fmt.Errorf("node %s was removed before it became ready", name)
		case status.State == node.Killed:
			return fmt.Errorf("node %s: %w before it became ready; see %s", name, node.ErrKilled, status.LogDir)
		case status.State == node.Ready:
			return nil
		}
		select {
		case <-change:
		case <-ctx.Done():
			return fmt.Errorf("node %s is not ready: %w; see %s", name, ctx.Err(), status.LogDir)
		}
	}
}

func (d *Daemon) node(name string) (node.Status, bool) {
	for _, status := range d.nodes.List() {
		if status.Name == name {
			return status, true
		}
	}
	return node.Status{}, false
}

func (d *Daemon) removeNode(r *http.Request) (any, error) {
	return nil, d.nodes.Remove(r.Context(), r.PathValue("name"))
}

func (d *Daemon) changeNode(r *http.Request) (any, error) {
	name := r.PathValue("name")
	switch verb := r.PathValue("verb"); verb {
	case "kill":
		return nil, d.nodes.Kill(name)
	case "cut":
		return nil, d.nodes.Cut(r.Context(), name)
	case "mend":
		return nil, d.nodes.Mend(r.Context(), name)
	case "restart-kubelet":
		return nil, d.nodes.RestartKubelet(r.Context(), name)
	case "restart-containerd":
		return nil, d.nodes.RestartContainerd(r.Context(), name)
	default:
		return nil, fmt.Errorf("%w: no verb %q for a node", errRequest, verb)
	}
}

func (d *Daemon) changeAPIServer(r *http.Request) (any, error) {
	var request ServerPort
	if err := decode(r, &request); err != nil {
		return nil, err
	}
	if request.Same {
		request.Port = d.plane.APIServer().Port
	}
	var err error
	switch verb := r.PathValue("verb"); verb {
	case "kill":
		err = d.plane.KillAPIServer()
	case "start":
		err = d.startAPIServer(r.Context(), request)
	case "restart":
		if d.plane.APIServer().Running {
			err = d.plane.KillAPIServer()
		}
		if err == nil {
			err = d.startAPIServer(r.Context(), request)
		}
	default:
		err = fmt.Errorf("%w: no verb %q for the apiserver", errRequest, verb)
	}
	return d.plane.APIServer(), err
}

func (d *Daemon) startAPIServer(ctx context.Context, request ServerPort) error {
	if request.NewAuthority {
		if err := d.plane.RenewFront(); err != nil {
			return err
		}
	}
	return d.plane.StartAPIServer(ctx, request.Port)
}

func (d *Daemon) changeKCP(r *http.Request) (any, error) {
	var request ServerPort
	if err := decode(r, &request); err != nil {
		return nil, err
	}
	if request.Same {
		request.Port = d.plane.KCP().Port
	}
	var err error
	switch verb := r.PathValue("verb"); verb {
	case "kill":
		err = d.plane.KillKCP()
	case "start":
		err = d.plane.StartKCP(r.Context(), request.Port)
	case "restart":
		err = d.plane.RestartKCP(r.Context(), request.Port)
	default:
		err = fmt.Errorf("%w: no verb %q for the kcp side", errRequest, verb)
	}
	return d.plane.KCP(), err
}

func (d *Daemon) setFaults(r *http.Request) (any, error) {
	var change faults.Change
	if err := decode(r, &change); err != nil {
		return nil, err
	}
	return d.faults.Set(change)
}

func (d *Daemon) setGateway(r *http.Request) (any, error) {
	var change gateway.Change
	if err := decode(r, &change); err != nil {
		return nil, err
	}
	if _, err := d.gateway.Set(change); err != nil {
		return nil, err
	}
	return d.gateway.Status(), nil
}

// errRequest says that a request cannot be understood.
var errRequest = errors.New("bad request")

func decode(r *http.Request, into any) error {
	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return fmt.Errorf("%w: %w", errRequest, err)
	}
	return nil
}

func reply(w http.ResponseWriter, answer any, err error) {
	w.Header().Set("Content-Type", "application/json")
	if err != nil {
		w.WriteHeader(code(err))
		answer = failure{Error: err.Error()}
	}
	// A client that has gone away needs no answer.
	_ = json.NewEncoder(w).Encode(answer)
}

func code(err error) int {
	is := func(targets ...error) bool {
		for _, target := range targets {
			if errors.Is(err, target) {
				return true
			}
		}
		return false
	}
	switch {
	case is(node.ErrUnknown):
		return http.StatusNotFound
	case is(errRequest, node.ErrName, gateway.ErrSettings, registry.ErrFaults, faults.ErrSettings):
		return http.StatusBadRequest
	case is(controlplane.ErrRunning, controlplane.ErrStopped, node.ErrKilled, node.ErrBusy, node.ErrFull, node.ErrFault):
		return http.StatusConflict
	case is(errStarting):
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}
