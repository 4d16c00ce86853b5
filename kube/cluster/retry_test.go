package cluster_test

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/socialweb-computer/tenant-executor/kube/cluster"
)

var errFinal = errors.New("no")

func TestRetry(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		errs    []error // of each try; the last one repeats
		budget  time.Duration
		tries   int
		want    error
		atMost  time.Duration
		atLeast time.Duration
	}{
		{"well at once", []error{nil}, time.Minute, 1, nil, 0, 0},
		{"well at the third", []error{syscall.ECONNREFUSED, syscall.ECONNRESET, nil}, time.Minute, 3, nil, time.Second, 500 * time.Millisecond},
		{"final at once", []error{errFinal}, time.Minute, 1, errFinal, 0, 0},
		{"final later", []error{syscall.ECONNREFUSED, errFinal}, time.Minute, 2, errFinal, time.Second, 0},
		{"never well", []error{syscall.ECONNREFUSED}, time.Minute, 0, syscall.ECONNREFUSED, time.Minute, time.Minute},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				from, tries := time.Now(), 0
				err := cluster.Retry(t.Context(), test.budget, func(context.Context) error {
					tries++
					return test.errs[min(tries, len(test.errs))-1]
				})
				took := time.Since(from)
				if !errors.Is(err, test.want) {
					t.Errorf("got %v, want %v", err, test.want)
				}
				if test.tries > 0 && tries != test.tries {
					t.Errorf("%d tries, want %d", tries, test.tries)
				}
				if took < test.atLeast || took > test.atMost {
					t.Errorf("took %s", took)
				}
			})
		})
	}
}

// An apiserver that is away for long is asked every few seconds, no less and
// no more.
func TestRetryPausesGrowToALimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		last := time.Now()
		var pauses []time.Duration
		_ = cluster.Retry(t.Context(), 10*time.Minute, func(context.Context) error {
			pauses = append(pauses, time.Since(last))
			last = time.Now()
			return syscall.ECONNREFUSED
		})
		if first := pauses[1]; first < 200*time.Millisecond || first > 240*time.Millisecond {
			t.Errorf("the first pause is %s", first)
		}
		for i, pause := range pauses[10:] {
			if pause < 4*time.Second || pause > 7*time.Second {
				t.Errorf("pause %d is %s", i+10, pause)
			}
		}
	})
}

// A try without an answer is given up, so that others follow.
func TestRetryDoesNotWaitForOneTry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		err := cluster.Retry(t.Context(), time.Minute, func(ctx context.Context) error {
			tries++
			if tries < 3 {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		})
		if err != nil || tries != 3 {
			t.Errorf("%d tries, %v", tries, err)
		}
	})
}

func TestRetryEndsWithTheContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		from := time.Now()
		err := cluster.Retry(ctx, time.Hour, func(context.Context) error { return syscall.ECONNREFUSED })
		if !errors.Is(err, syscall.ECONNREFUSED) || time.Since(from) != 2*time.Second {
			t.Errorf("got %v after %s", err, time.Since(from))
		}
	})
}

func TestRetryIfAsksTheCaller(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		err := cluster.RetryIf(t.Context(), time.Minute, func(err error) bool { return errors.Is(err, errFinal) }, func(context.Context) error {
			tries++
			if tries < 4 {
				return errFinal
			}
			return syscall.ECONNREFUSED
		})
		if tries != 4 || !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("%d tries, %v", tries, err)
		}
	})
}
