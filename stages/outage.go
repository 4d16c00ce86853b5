package stages

import (
	"errors"
	"net"
	"time"

	"github.com/socialweb-computer/tenant-executor/executor/joblog"
)

// outageTeller tells the reader of the job log why nothing happens. It
// implements cluster.OutageObserver.
type outageTeller struct{ log joblog.Log }

// ClusterAway tells that requests are repeated.
func (t outageTeller) ClusterAway(err error) {
	var network net.Error
	if errors.As(err, &network) {
		t.log.Warn("The tenant cluster does not answer, trying again. (%v)", err)
		return
	}
	t.log.Warn("The tenant cluster cannot do at present what it is asked, trying again. (%v)", err)
}

// ClusterBack tells that it goes on.
func (t outageTeller) ClusterBack(after time.Duration) {
	t.log.Info("The tenant cluster answers again, after %s.", joblog.Duration(after))
}
