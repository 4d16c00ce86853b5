package bounded

import (
	"context"

	"github.com/socialweb-computer/tenant-executor/kube/crash"
)

// Do gives the result of work, or the error of ctx as soon as ctx ends, for
// work that does not heed a context itself. A result that comes later goes to
// drop, which may be nil.
func Do[T any](ctx context.Context, work func() (T, error), drop func(T)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	crash.Go(ctx, func() {
		value, err := work()
		done <- result{value, err}
	})
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		crash.Go(ctx, func() {
			if r := <-done; r.err == nil && drop != nil {
				drop(r.value)
			}
		})
		var none T
		return none, ctx.Err()
	}
}
