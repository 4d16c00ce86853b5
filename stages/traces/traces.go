// Package traces shows the course of a job to whoever gathers traces
// (OpenTelemetry). It is set up by the standard environment variables of the
// runner's own service, and off without them; a job's variables have other names
// and cannot set it up.
package traces

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/socialweb-computer/tenant-executor/stages/course"
)

// The standard variables
// (https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/).
// The library reads the others of them itself.
const (
	endpoint       = "OTEL_EXPORTER_OTLP_ENDPOINT"
	traceEndpoint  = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	protocol       = "OTEL_EXPORTER_OTLP_PROTOCOL"
	traceProtocol  = "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"
	exporter       = "OTEL_TRACES_EXPORTER"
	disabled       = "OTEL_SDK_DISABLED"
	httpProtobuf   = "http/protobuf"
	driver         = "tenant-executor"
	exporterNone   = "none"
	exporterOTLP   = "otlp"
	attributesBase = "tenant_executor."
)

// Wanted says whether the environment asks for traces. The error says that it
// asks for what this driver does not do.
func Wanted(env map[string]string) (bool, error) {
	if strings.EqualFold(env[disabled], "true") || env[exporter] == exporterNone || env[endpoint] == "" && env[traceEndpoint] == "" {
		return false, nil
	}
	if kind := env[exporter]; kind != "" && kind != exporterOTLP {
		return false, fmt.Errorf("%s is %q: the driver sends traces by %s alone", exporter, kind, exporterOTLP)
	}
	name, chosen := traceProtocol, env[traceProtocol]
	if chosen == "" {
		name, chosen = protocol, env[protocol]
	}
	if chosen != "" && chosen != httpProtobuf {
		return false, fmt.Errorf("%s is %q: the driver sends traces by %s alone, which collectors take at port 4318", name, chosen, httpProtobuf)
	}
	return true, nil
}

// Export sends the course of an attempt as one trace. Its identity is a pure
// function of the attempt, so whoever has the job's key finds it.
func Export(ctx context.Context, c course.Course, version, host string) error {
	to, err := otlptracehttp.New(ctx)
	if err != nil {
		return fmt.Errorf("sending the job's trace: %w", err)
	}
	defer to.Shutdown(ctx) //nolint:errcheck // what was sent was answered
	about, err := resource.New(ctx,
		resource.WithAttributes(semconv.ServiceName(driver), semconv.ServiceVersion(version), semconv.HostName(host)),
		resource.WithTelemetrySDK(),
		resource.WithFromEnv(), // wins over the above
	)
	if err != nil {
		return fmt.Errorf("sending the job's trace: %w", err)
	}
	kept := &keeper{}
	provider := sdk.NewTracerProvider(sdk.WithResource(about), sdk.WithIDGenerator(&ids{name: name(c)}), sdk.WithSpanProcessor(kept))
	record(ctx, provider.Tracer(driver), c)
	if len(kept.spans) == 0 {
		return nil // the sampler wants none (OTEL_TRACES_SAMPLER)
	}
	if err := to.ExportSpans(ctx, kept.spans); err != nil {
		return fmt.Errorf("sending the job's trace: %w", err)
	}
	return nil
}

// record makes the spans: the attempt, its steps, and the phases of prepare.
func record(ctx context.Context, tracer trace.Tracer, c course.Course) {
	end := c.Last()
	ctx, root := tracer.Start(ctx, "job", trace.WithTimestamp(c.Begun), trace.WithAttributes(about(c)...))
	for _, s := range c.Steps {
		within, span := tracer.Start(ctx, s.Name, trace.WithTimestamp(s.Begun), trace.WithAttributes(aboutStep(s)...))
		if s.Name == course.Prepare {
			phases(within, tracer, c, s)
		}
		if s.Cause != "" {
			span.SetStatus(codes.Error, s.Cause)
		}
		span.End(trace.WithTimestamp(s.Begun.Add(s.Took.Duration())))
	}
	if failed, is := c.Failure(); is {
		root.SetStatus(codes.Error, failed.Cause)
	}
	root.End(trace.WithTimestamp(end))
}

// phases are the waits of prepare, one after the other. They end with prepare:
// what came before the first wait is not known apart.
func phases(ctx context.Context, tracer trace.Tracer, c course.Course, prepare course.Step) {
	at := prepare.Begun.Add(max(0, prepare.Took-c.Waits.Total()).Duration())
	for _, p := range c.Waits.Phases() {
		if p.Wait == 0 {
			continue
		}
		_, span := tracer.Start(ctx, "wait: "+p.Name, trace.WithTimestamp(at))
		at = at.Add(p.Wait.Duration())
		span.End(trace.WithTimestamp(at))
	}
}

func about(c course.Course) []attribute.KeyValue {
	all := []attribute.KeyValue{
		semconv.CICDPipelineTaskRunID(strconv.FormatInt(c.JobID, 10)),
		semconv.CICDPipelineTaskName(c.Name),
		attribute.String("gitlab.project.path", c.Project),
		attribute.String("gitlab.ref", c.Ref),
		attribute.String(attributesBase+"job.key", c.Key),
		attribute.String(attributesBase+"attempt", c.Attempt),
		attribute.String(attributesBase+"result", c.Result(c.Last())),
	}
	for _, known := range []struct {
		key   attribute.Key
		value string
	}{
		{semconv.K8SNamespaceNameKey, c.Namespace}, {semconv.K8SPodNameKey, c.Pod}, {semconv.K8SNodeNameKey, c.Node},
		{attributesBase + "start", string(c.Kind)}, {attributesBase + "runner", c.Runner},
	} {
		if known.value != "" {
			all = append(all, known.key.String(known.value))
		}
	}
	return all
}

func aboutStep(s course.Step) []attribute.KeyValue {
	var all []attribute.KeyValue
	if s.Cause != "" {
		all = append(all, semconv.ErrorTypeKey.String(s.Cause), attribute.String(attributesBase+"class", s.Class))
	}
	for _, known := range []struct {
		name  string
		value int64
	}{{"exit_code", int64(s.Exit)}, {"output_bytes", s.Bytes}, {"reconnects", int64(s.Reconnects)}} {
		if known.value != 0 {
			all = append(all, attribute.Int64(attributesBase+known.name, known.value))
		}
	}
	return all
}

// ids derives the names of spans from that of the attempt, in their order.
type ids struct {
	name  string
	spans int
}

// TraceID is the trace of an attempt.
func TraceID(c course.Course) trace.TraceID { return traceID(name(c)) }

func name(c course.Course) string { return c.Key + "-" + c.Attempt }

func traceID(name string) trace.TraceID {
	sum := sha256.Sum256([]byte("trace-" + name))
	return trace.TraceID(sum[:16])
}

// NewIDs implements sdk.IDGenerator.
func (i *ids) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	id := traceID(i.name)
	return id, i.NewSpanID(ctx, id)
}

// NewSpanID implements sdk.IDGenerator.
func (i *ids) NewSpanID(context.Context, trace.TraceID) trace.SpanID {
	i.spans++
	sum := sha256.Sum256(fmt.Appendf(nil, "span-%s-%d", i.name, i.spans))
	return trace.SpanID(sum[:8])
}

// keeper keeps the spans that have ended, so that they go out in one request
// whose error is seen.
type keeper struct{ spans []sdk.ReadOnlySpan }

// OnStart implements sdk.SpanProcessor.
func (k *keeper) OnStart(context.Context, sdk.ReadWriteSpan) {}

// OnEnd implements sdk.SpanProcessor.
func (k *keeper) OnEnd(s sdk.ReadOnlySpan) { k.spans = append(k.spans, s) }

// Shutdown implements sdk.SpanProcessor.
func (k *keeper) Shutdown(context.Context) error { return nil }

// ForceFlush implements sdk.SpanProcessor.
func (k *keeper) ForceFlush(context.Context) error { return nil }

// Limit is how long a job's end waits for whoever gathers traces.
const Limit = 3 * time.Second
