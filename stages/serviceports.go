package stages

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/socialweb-computer/tenant-executor/executor/failure"
	"github.com/socialweb-computer/tenant-executor/executor/job"
	"github.com/socialweb-computer/tenant-executor/executor/joblog"
	"github.com/socialweb-computer/tenant-executor/executor/pod"
	"github.com/socialweb-computer/tenant-executor/kube/bounded"
	"github.com/socialweb-computer/tenant-executor/kube/pods"
	"github.com/socialweb-computer/tenant-executor/kube/stream"
	"github.com/socialweb-computer/tenant-executor/kube/stream/agent"
)

// awaitServices waits until the services answer that say by which port they
// can be known to be ready. As with the kubernetes executor the job does not
// begin before; unlike there the wait has an end of its own, and a service that
// has ended is not waited for.
func (d *Driver) awaitServices(ctx context.Context, running *corev1.Pod) error {
	services, err := d.services()
	if err != nil {
		return err
	}
	silent := withPort(services)
	if len(silent) == 0 {
		return nil
	}
	ref, from, budget := pods.RefTo(running), d.clock.Now(), d.settings.Wait.Services.Value()
	for said := false; ; said = true {
		if silent, err = d.silent(ctx, ref, silent); err != nil {
			return err
		}
		waited := d.clock.Now().Sub(from)
		switch {
		case len(silent) == 0:
			if said {
				d.log.Info("The services answer, after %s", joblog.Duration(waited))
			}
			return nil
		case waited >= budget:
			d.lastWordsOf(ctx, ref, silent)
			return failure.New(failure.ServiceSilent, "no answer within %s from %s", joblog.Duration(budget), portsOf(silent))
		case !said:
			d.log.Info("Waiting for services to answer: %s", portsOf(silent))
		}
		if err := d.waitsInVain(ctx, ref, services, silent); err != nil {
			return err
		}
	}
}

// waitsInVain is the failure of a service that is waited for and has ended.
func (d *Driver) waitsInVain(ctx context.Context, ref pods.Ref, all, silent []pod.Service) error {
	found, err := d.pods.Get(ctx, ref)
	if err != nil {
		return nil // whether it answers tells as well
	}
	for _, over := range stateOf(found).Over {
		for _, s := range silent {
			if s.Container != over.Container {
				continue
			}
			lines := d.lastWords(ctx, ref, s)
			if clash := s.Clash(all, lines); clash != "" {
				d.log.Warn("%s", clash)
			}
			return failure.New(failure.ServiceSilent, "service %s (image %s) has ended and does not answer at port %d: %s", s.Label, s.Image, s.Port, d.endOf(over)).
				Seen(failure.ServiceEnded, "")
		}
	}
	return nil
}

func (d *Driver) lastWordsOf(ctx context.Context, ref pods.Ref, services []pod.Service) {
	if d.showsServices() {
		return
	}
	for _, s := range services {
		d.log.Info("What service %s said last:", s.Label)
		d.lastWords(ctx, ref, s)
	}
}

func withPort(services []pod.Service) []pod.Service {
	var with []pod.Service
	for _, s := range services {
		if s.Port != 0 {
			with = append(with, s)
		}
	}
	return with
}

func portsOf(services []pod.Service) string {
	var all []string
	for _, s := range services {
		all = append(all, fmt.Sprintf("%s at port %d", s.Label, s.Port))
	}
	return strings.Join(all, ", ")
}

// silent are those of the services that do not answer, after a short wait in
// the Pod for their ports.
func (d *Driver) silent(ctx context.Context, ref pods.Ref, services []pod.Service) ([]pod.Service, error) {
	var still []pod.Service
	// Looking twice does no harm, so a connection that broke is tried again.
	err := d.cluster.RetryIf(ctx, d.settings.Wait.Reach.Value(), stream.MayRepeat, func(ctx context.Context) (err error) {
		still, err = d.silentPorts(ctx, ref, services)
		return err
	})
	if err != nil {
		return nil, d.execFailure(ctx, ref, err)
	}
	return still, nil
}

// silentPorts asks the agent in the helper container, which shares the network
// of all containers of the Pod, which services do not answer. GitLab's
// helper has a command for it as well, which other helpers need not have.
func (d *Driver) silentPorts(ctx context.Context, ref pods.Ref, services []pod.Service) ([]pod.Service, error) {
	var list []string
	for _, s := range services {
		list = append(list, strconv.Itoa(int(s.Port)))
	}
	var out, stderr bounded.Buffer
	code, err := d.runner.Run(ctx, stream.Command{
		Namespace: ref.Namespace, Pod: ref.Name, Container: string(job.Helper),
		Args:   []string{podAgent, agent.VerbPorts, strings.Join(list, ",")},
		Stdout: &out, Stderr: &stderr,
	})
	if err == nil && code != 0 {
		err = fmt.Errorf("looking at the services' ports ended with exit code %d: %s", code, strings.TrimSpace(stderr.String()))
	}
	if err != nil {
		return nil, err
	}
	silent := strings.Fields(out.String())
	var still []pod.Service
	for _, s := range services {
		if slices.Contains(silent, strconv.Itoa(int(s.Port))) {
			still = append(still, s)
		}
	}
	return still, nil
}
