package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"

	"github.com/socialweb-computer/tenant-executor/examples/localtenant/controlplane"
	"github.com/socialweb-computer/tenant-executor/examples/localtenant/faults"
	"github.com/socialweb-computer/tenant-executor/examples/localtenant/gateway"
	"github.com/socialweb-computer/tenant-executor/examples/localtenant/node"
	"github.com/socialweb-computer/tenant-executor/examples/localtenant/tenant"
)

// ErrNotRunning says that the tenant's daemon does not answer.
var ErrNotRunning = errors.New("is not running")

// Client asks the daemon of a tenant.
type Client struct {
	tenant tenant.Tenant
	http   *http.Client
}

// NewClient makes a client; nothing is asked yet.
func NewClient(t tenant.Tenant) *Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		var dialer net.Dialer
		return dialer.DialContext(ctx, "unix", t.Socket())
	}
	return &Client{tenant: t, http: &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}}
}

// FollowStart tells the steps of the daemon's start until it is ready, and
// fails with its reason when it is not going to be.
func (c *Client) FollowStart(ctx context.Context, tell func(Step)) error {
	response, err := c.send(ctx, http.MethodGet, pathStart, nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	decoder := json.NewDecoder(response.Body)
	for {
		var step Step
		if err := decoder.Decode(&step); err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return fmt.Errorf("the tenant's daemon has ended at its start: %w", err)
		}
		switch {
		case step.Error != "":
			return errors.New(step.Error)
		case step.Ready:
			return nil
		}
		tell(step)
	}
}

// Status gives the tenant's state. A tenant that does not run is no error.
func (c *Client) Status(ctx context.Context) (Status, error) {
	var status Status
	err := c.call(ctx, http.MethodGet, pathStatus, nil, &status)
	if errors.Is(err, ErrNotRunning) {
		return Offline(c.tenant), nil
	}
	return status, err
}

// AddNode boots a node.
func (c *Client) AddNode(ctx context.Context, request AddNode) (node.Status, error) {
	var status node.Status
	return status, c.call(ctx, http.MethodPost, pathNodes, request, &status)
}

// RemoveNode removes a node.
func (c *Client) RemoveNode(ctx context.Context, name string) error {
	return c.call(ctx, http.MethodDelete, pathNodes+"/"+url.PathEscape(name), nil, nil)
}

// ChangeNode does one of kill, cut, mend, restart-kubelet and
// restart-containerd to a node.
func (c *Client) ChangeNode(ctx context.Context, name, verb string) error {
	return c.call(ctx, http.MethodPost, pathNodes+"/"+url.PathEscape(name)+"/"+verb, nil, nil)
}

// ChangeAPIServer does one of kill, start and restart.
func (c *Client) ChangeAPIServer(ctx context.Context, verb string, port ServerPort) (controlplane.APIServer, error) {
	var state controlplane.APIServer
	return state, c.call(ctx, http.MethodPost, pathAPIServer+"/"+verb, port, &state)
}

// SetGateway changes settings of the gateway.
func (c *Client) SetGateway(ctx context.Context, change gateway.Change) (gateway.Status, error) {
	var status gateway.Status
	return status, c.call(ctx, http.MethodPatch, pathGateway, change, &status)
}

// SetRegistry makes the registry slow or unavailable, or well again.
func (c *Client) SetRegistry(ctx context.Context, change RegistryChange) (RegistryStatus, error) {
	var status RegistryStatus
	return status, c.call(ctx, http.MethodPatch, pathRegistry, change, &status)
}

// ChangeKCP does one of kill, start and restart to the kcp side.
func (c *Client) ChangeKCP(ctx context.Context, verb string, port ServerPort) (controlplane.KCP, error) {
	var state controlplane.KCP
	return state, c.call(ctx, http.MethodPost, pathKCP+"/"+verb, port, &state)
}

// SetFaults changes what is still to go wrong.
func (c *Client) SetFaults(ctx context.Context, change faults.Change) (faults.Settings, error) {
	var settings faults.Settings
	return settings, c.call(ctx, http.MethodPatch, pathFaults, change, &settings)
}

func (c *Client) call(ctx context.Context, method, path string, body, into any) error {
	response, err := c.send(ctx, method, path, body)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return fmt.Errorf("ask tenant %q: %w", c.tenant.Name(), err)
	}
	if response.StatusCode >= http.StatusBadRequest {
		var problem failure
		if err := json.Unmarshal(text, &problem); err != nil || problem.Error == "" {
			return fmt.Errorf("ask tenant %q: %s: %s", c.tenant.Name(), response.Status, text)
		}
		return errors.New(problem.Error)
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("ask tenant %q: read its answer: %w", c.tenant.Name(), err)
	}
	return nil
}

func (c *Client) send(ctx context.Context, method, path string, body any) (*http.Response, error) {
	// No body at all where there is nothing to say: the daemon notices that
	// its client has gone only once the body is read.
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("ask tenant %q: %w", c.tenant.Name(), err)
		}
		content = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(ctx, method, "http://tenant"+path, content)
	if err != nil {
		return nil, fmt.Errorf("ask tenant %q: %w", c.tenant.Name(), err)
	}
	response, err := c.http.Do(request)
	if errors.Is(err, fs.ErrPermission) {
		return nil, fmt.Errorf("ask tenant %q: this needs root, try again with sudo: %w", c.tenant.Name(), err)
	}
	var dial *net.OpError
	if errors.As(err, &dial) && dial.Op == "dial" {
		return nil, c.NotRunning()
	}
	if err != nil {
		return nil, fmt.Errorf("ask tenant %q: %w", c.tenant.Name(), err)
	}
	return response, nil
}

// NotRunning says that the tenant does not run, and how to start it.
func (c *Client) NotRunning() error {
	return fmt.Errorf("tenant %q %w: start it with `localtenant up%s`", c.tenant.Name(), ErrNotRunning, c.tenant.Flags())
}
