package main_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/socialweb-computer/tenant-executor/stages/traces"
)

// gatherer takes traces as an OpenTelemetry collector does.
type gatherer struct {
	t      *testing.T
	answer func(w http.ResponseWriter)

	mu    sync.Mutex
	asked []*http.Request
	spans []*otlp.Span
	about map[string]string
}

func (h *harness) gather(answer func(http.ResponseWriter)) *gatherer {
	g := &gatherer{t: h.t, answer: answer, about: map[string]string{}}
	server := httptest.NewServer(g)
	h.t.Cleanup(server.Close)
	h.env["OTEL_EXPORTER_OTLP_ENDPOINT"] = server.URL
	return g
}

func (g *gatherer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		g.t.Error(err)
	}
	var request collector.ExportTraceServiceRequest
	if err := proto.Unmarshal(body, &request); err != nil {
		g.t.Error(err)
	}
	g.mu.Lock()
	g.asked = append(g.asked, r)
	for _, of := range request.ResourceSpans {
		for _, a := range of.Resource.Attributes {
			g.about[a.Key] = a.Value.GetStringValue()
		}
		for _, scope := range of.ScopeSpans {
			g.spans = append(g.spans, scope.Spans...)
		}
	}
	g.mu.Unlock()
	if g.answer != nil {
		g.answer(w)
	}
}

// A job's end sends its course as one trace: the attempt, its steps, and the
// waits within prepare, each within its time.
func TestTrace(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.play()
	g := h.gather(nil)
	h.env["OTEL_EXPORTER_OTLP_HEADERS"] = "authorization=Bearer%20t"
	h.env["OTEL_RESOURCE_ATTRIBUTES"] = "deployment.environment.name=test"
	// A pipeline cannot set it up.
	h.env["CUSTOM_ENV_OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"] = "http://127.0.0.1:1"
	h.configured()
	h.theJob()
	if got := h.run("build_script", "echo one; exit 3"); got.code != buildCode {
		t.Fatalf("%+v", got)
	}
	if len(g.spans) != 0 {
		t.Errorf("%d spans before the job's end", len(g.spans))
	}
	h.expect(h.stage("cleanup"), 0, "", "")
	// A second cleanup has nothing more to tell.
	h.expect(h.stage("cleanup"), 0, "", "")

	if len(g.asked) != 1 || g.asked[0].URL.Path != "/v1/traces" || g.asked[0].Header.Get("Authorization") != "Bearer t" {
		t.Fatalf("requests: %+v", g.asked)
	}
	if g.about["service.name"] != "tenant-executor" || g.about["deployment.environment.name"] != "test" {
		t.Errorf("resource: %v", g.about)
	}
	c := h.courses()[0]
	id := traces.TraceID(c)
	spans := map[string]*otlp.Span{}
	for _, s := range g.spans {
		if string(s.TraceId) != string(id[:]) {
			t.Errorf("span %s is of trace %x, want %s", s.Name, s.TraceId, id)
		}
		spans[s.Name] = s
	}
	for name, within := range map[string]string{"prepare": "job", "build_script": "job", "cleanup": "job", "wait: reach": "prepare"} {
		s, parent := spans[name], spans[within]
		if s == nil || parent == nil {
			t.Fatalf("%s and %s are not both there: %v", name, within, spans)
		}
		if string(s.ParentSpanId) != string(parent.SpanId) || s.StartTimeUnixNano < parent.StartTimeUnixNano || s.EndTimeUnixNano > parent.EndTimeUnixNano || s.EndTimeUnixNano < s.StartTimeUnixNano {
			t.Errorf("%s does not lie within %s: %v, %v", name, within, s, parent)
		}
	}
	has := func(span, key, value string) {
		for _, a := range spans[span].Attributes {
			if a.Key == key && strings.Contains(a.Value.String(), value) {
				return
			}
		}
		t.Errorf("%s lacks %s=%s: %v", span, key, value, spans[span].Attributes)
	}
	has("job", "cicd.pipeline.task.run.id", "4711")
	has("job", "k8s.node.name", node)
	has("job", "tenant_executor.result", "failed")
	has("build_script", "error.type", "script_failed")
	has("build_script", "tenant_executor.output_bytes", "4")
	if s := spans["job"].Status; s.GetCode() != otlp.Status_STATUS_CODE_ERROR || s.GetMessage() != "script_failed" {
		t.Errorf("status %v", s)
	}
	for _, s := range g.spans {
		for _, secret := range []string{canaryToken, canaryVariable, canaryScript} {
			if strings.Contains(s.String(), secret) {
				t.Errorf("a span shows a secret: %s", s)
			}
		}
	}
}

// Whoever gathers traces cannot fail a job, nor hold up its end for long.
func TestTraceTroubles(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		answer func(http.ResponseWriter)
		env    map[string]string
		want   string
	}{
		"refused":        {func(w http.ResponseWriter) { w.WriteHeader(http.StatusForbidden) }, nil, "sending the job's trace"},
		"overloaded":     {func(w http.ResponseWriter) { w.WriteHeader(http.StatusServiceUnavailable) }, nil, "sending the job's trace"},
		"silent":         {func(http.ResponseWriter) { time.Sleep(2 * traces.Limit) }, nil, "sending the job's trace"},
		"nobody":         {nil, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}, "sending the job's trace"},
		"grpc":           {nil, map[string]string{"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, `OTEL_EXPORTER_OTLP_PROTOCOL is "grpc": the driver sends traces by http/protobuf alone`},
		"other exporter": {nil, map[string]string{"OTEL_TRACES_EXPORTER": "zipkin"}, `OTEL_TRACES_EXPORTER is "zipkin"`},
		"none":           {nil, map[string]string{"OTEL_TRACES_EXPORTER": "none"}, ""},
		"disabled":       {nil, map[string]string{"OTEL_SDK_DISABLED": "true"}, ""},
		"sampled away":   {nil, map[string]string{"OTEL_TRACES_SAMPLER": "always_off"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			h.play()
			g := h.gather(test.answer)
			for name, value := range test.env {
				h.env[name] = value
			}
			h.configured()
			h.theJob()
			got := h.stage("cleanup")
			if got.code != 0 || got.stdout != "" || !strings.Contains(got.stderr, test.want) || test.want == "" && got.stderr != "" {
				t.Errorf("%+v", got)
			}
			if test.want == "" && len(g.asked) > 0 {
				t.Errorf("%d requests", len(g.asked))
			}
			if c := h.courses()[0]; !c.Finished() {
				t.Errorf("%+v", c)
			}
			if step, _ := h.courses()[0].Step("cleanup"); step.Took.Duration() >= traces.Limit {
				t.Errorf("the wait counts as cleanup's: %v s", step.Took)
			}
		})
	}
}
