// Package crash keeps a panic in a goroutine from ending the process on its own
// terms: with a stack trace in the job log, and an exit code that no runner has
// asked for.
package crash

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
)

// Panic is a panic as an error.
type Panic struct {
	Value any
	// Where is the function in which it began, with its place.
	Where string
}

// Error says what and where.
func (p *Panic) Error() string { return fmt.Sprintf("%v, in %s", p.Value, p.Where) }

type handlerKey struct{}

// Handle is a context for whose goroutines handle hears of a panic. It may be
// called more than once, by several goroutines.
func Handle(ctx context.Context, handle func(*Panic)) context.Context {
	return context.WithValue(ctx, handlerKey{}, handle)
}

// Go runs f in a goroutine of its own. A panic there goes to the handler of ctx;
// without one it ends the process, as usual.
func Go(ctx context.Context, f func()) { go Guard(ctx, f)() }

// Guard is f for a goroutine that somebody else starts, as a sync.WaitGroup does.
//
// After a panic the goroutine does not end: whoever waits for it must not take it
// for one that has done its work. What f defers itself has run by then.
func Guard(ctx context.Context, f func()) func() {
	return func() {
		defer func() {
			met := recover()
			if met == nil {
				return
			}
			handle, is := ctx.Value(handlerKey{}).(func(*Panic))
			if !is {
				panic(met)
			}
			handle(Met(met))
			select {}
		}()
		f()
	}
}

// Met makes a Panic of what recover gave to a deferred function that calls it.
func Met(value any) *Panic { return &Panic{Value: value, Where: began()} }

// began is where the panic began: the function below the runtime's own.
func began() string {
	counters := make([]uintptr, 32)
	frames := runtime.CallersFrames(counters[:runtime.Callers(4, counters)])
	for {
		frame, more := frames.Next()
		if !strings.HasPrefix(frame.Function, "runtime.") || !more {
			return fmt.Sprintf("%s (%s:%d)", frame.Function, filepath.Base(frame.File), frame.Line)
		}
	}
}
