// Package testbed is what the end-to-end tests and the benchmark stand on: a
// local tenant cluster, the built driver, and a runner that calls it for jobs.
package testbed

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// TenantOptions are the gateway's settings of a tenant.
type TenantOptions struct {
	// Name of the tenant. A tenant of that name that is there already is
	// removed first: it is left from a run that was cut off.
	Name                 string
	Ceiling, PodsPerNode int
	Hold, BootTime       time.Duration
	// Log gets what localtenant says.
	Log io.Writer
}

// Tenant is a running local tenant cluster.
type Tenant struct {
	Name string
	// Program is the localtenant command.
	Program string
	// Ceiling is how many nodes the gateway boots at most.
	Ceiling int
	log     io.Writer
}

// Status is the part of `localtenant status -o json` that is used here.
type Status struct {
	URL           string `json:"url"`
	AccessDir     string `json:"accessDir"`
	Kubeconfig    string `json:"kubeconfig"`
	BridgeAddress string `json:"bridgeAddress"`
	Registry      struct {
		Plain string `json:"plain"`
		// Auth and Token want a login: Username with Password. Guest has the
		// same password and may pull nothing.
		Auth     string `json:"auth"`
		Token    string `json:"token"`
		Username string `json:"username"`
		Password string `json:"password"`
		Guest    string `json:"guest"`
	} `json:"registry"`
	KCP struct {
		Kubeconfig string `json:"kubeconfig"`
		Cluster    string `json:"cluster"`
	} `json:"kcp"`
	Mount struct {
		URL string `json:"url"`
	} `json:"mount"`
	APIServer struct {
		AuditLog string `json:"auditLog"`
	} `json:"apiserver"`
	Nodes []struct {
		Name  string `json:"name"`
		State string `json:"state"`
	} `json:"nodes"`
}

// StartTenant starts a tenant cluster with no nodes. Program is the localtenant
// command.
func StartTenant(ctx context.Context, program string, o TenantOptions) (*Tenant, error) {
	t := &Tenant{Name: o.Name, Program: program, Ceiling: o.Ceiling, log: o.Log}
	if err := t.Down(ctx); err != nil {
		return nil, err
	}
	_, err := t.Do(ctx, "up",
		"--ceiling", strconv.Itoa(o.Ceiling), "--pods-per-node", strconv.Itoa(o.PodsPerNode),
		"--hold", o.Hold.String(), "--boot-time", o.BootTime.String())
	return t, err
}

// Do runs a localtenant command for this tenant and gives its output.
func (t *Tenant) Do(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, t.Program, append(args, "--name", t.Name)...)
	var out bytes.Buffer
	cmd.Stdout = io.MultiWriter(&out, t.log)
	cmd.Stderr = t.log
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("localtenant %s: %w", strings.Join(args, " "), err)
	}
	return out.String(), nil
}

// Status asks the tenant how it is.
func (t *Tenant) Status(ctx context.Context) (Status, error) {
	var s Status
	out, err := exec.CommandContext(ctx, t.Program, "status", "-o", "json", "--name", t.Name).Output()
	if err != nil {
		return s, fmt.Errorf("localtenant status: %w", err)
	}
	if err := json.Unmarshal(out, &s); err != nil {
		return s, fmt.Errorf("localtenant status: %w", err)
	}
	return s, nil
}

// AdminConfig is how its administrator reaches the cluster.
func (t *Tenant) AdminConfig(ctx context.Context) (*rest.Config, error) {
	s, err := t.Status(ctx)
	if err != nil {
		return nil, err
	}
	config, err := clientcmd.BuildConfigFromFlags("", s.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", s.Kubeconfig, err)
	}
	config.QPS, config.Burst = 100, 200
	return config, nil
}

// Admin is the cluster as its administrator sees it.
func (t *Tenant) Admin(ctx context.Context) (*corev1.CoreV1Client, error) {
	config, err := t.AdminConfig(ctx)
	if err != nil {
		return nil, err
	}
	return corev1.NewForConfig(config)
}

// Down removes the tenant.
func (t *Tenant) Down(ctx context.Context) error {
	_, err := t.Do(ctx, "down")
	return err
}

// Leftovers lists what is still there of the tenant, "" for nothing.
func (t *Tenant) Leftovers(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, t.Program, "leftovers", "--name", t.Name).CombinedOutput()
	if err == nil {
		return "", nil
	}
	if len(out) > 0 {
		return string(out), nil
	}
	return "", fmt.Errorf("localtenant leftovers: %w", err)
}
