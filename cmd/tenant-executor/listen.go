package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/socialweb-computer/tenant-executor/executor/failure"
	"github.com/socialweb-computer/tenant-executor/executor/settings"
	"github.com/socialweb-computer/tenant-executor/kube/capacity"
	"github.com/socialweb-computer/tenant-executor/kube/crash"
	"github.com/socialweb-computer/tenant-executor/stages"
	"github.com/socialweb-computer/tenant-executor/stages/course"
	"github.com/socialweb-computer/tenant-executor/stages/metrics"
)

// metricsPath is where Prometheus looks.
const metricsPath = "/metrics"

// requestLimit is how long one who asks for the metrics may take.
const requestLimit = 10 * time.Second

// listen answers Prometheus until ctx ends, where the settings name an address
// for that. It gives what hears of the cluster's state, nil where nobody asks.
func (a *app) listen(ctx context.Context, s settings.Settings, once bool) (func(capacity.Plan), error) {
	if s.Metrics.Listen == "" || once {
		return nil, nil
	}
	listener, err := net.Listen("tcp", s.Metrics.Listen)
	if err != nil {
		return nil, failure.Wrap(failure.Settings, err, "the address for Prometheus (metrics.listen)")
	}
	e := &exporter{book: func() (*course.Book, error) { return a.look(s.State.Dir) }, warn: func(err error) { a.voice.Warn("%v", err) }}
	mux := http.NewServeMux()
	mux.Handle("GET "+metricsPath, e)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "tenant-executor warm: the metrics are at "+metricsPath, http.StatusNotFound)
	})
	server := &http.Server{Handler: mux, ReadTimeout: requestLimit, WriteTimeout: requestLimit, MaxHeaderBytes: 16 << 10}
	crash.Go(ctx, func() {
		<-ctx.Done()
		_ = server.Close()
	})
	crash.Go(ctx, func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			a.voice.Warn("Prometheus is not answered any more: %v", err)
		}
	})
	a.voice.Info("Prometheus is answered at http://%s%s", listener.Addr(), metricsPath)
	return e.see, nil
}

// exporter answers Prometheus: the counts of jobs, and the state of the cluster
// as it was last seen.
type exporter struct {
	// book opens what is known of jobs.
	book func() (*course.Book, error)
	warn func(error)

	mu   sync.Mutex
	plan *capacity.Plan
	said string
}

func (e *exporter) see(plan capacity.Plan) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.plan = &plan
}

// ServeHTTP implements http.Handler.
func (e *exporter) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	text, err := e.text()
	e.tell(err)
	if text == nil {
		http.Error(w, "the metrics cannot be read; the driver's own log says why", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = w.Write(text) // whoever asked has gone
}

// text is the metrics, also where what was counted could not be written down.
func (e *exporter) text() ([]byte, error) {
	book, err := e.book()
	if err != nil {
		return nil, err
	}
	totals, _, folded := metrics.Fold(book, stages.Clock{}.Now())
	text, err := totals.Text(e.gauges()...)
	return text, errors.Join(folded, err)
}

func (e *exporter) gauges() []metrics.Gauge {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := []metrics.Gauge{buildInfo()}
	if e.plan == nil {
		return all
	}
	const jobs, free = "tenant_executor_jobs", "tenant_executor_free_nodes"
	const freeHelp = "Nodes kept free for jobs to come: wanted by the policies, held by placeholders, or awaited by them."
	return append(all,
		metrics.Gauge{Name: jobs, Help: "Pods of jobs on the cluster that run or wait.", Value: float64(e.plan.Jobs)},
		metrics.Gauge{Name: free, Help: freeHelp, Labels: []string{"state", "wanted"}, Value: float64(e.plan.Wanted)},
		metrics.Gauge{Name: free, Help: freeHelp, Labels: []string{"state", "held"}, Value: float64(e.plan.Held)},
		metrics.Gauge{Name: free, Help: freeHelp, Labels: []string{"state", "waiting"}, Value: float64(e.plan.Waiting)},
	)
}

// tell says what is wrong, once.
func (e *exporter) tell(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	said := ""
	if err != nil {
		said = err.Error()
	}
	if said != "" && said != e.said {
		e.warn(err)
	}
	e.said = said
}
