package network

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPlan(t *testing.T) {
	plan, err := NewPlan("10.201.0.0/16")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{
		"host": plan.Host().String(), "first node": plan.Node(1).String(), "last node": plan.Node(MaxSlots).String(),
		"first Pods": plan.Pods(1).String(), "last Pods": plan.Pods(MaxSlots).String(),
		"services": plan.Services().String(), "bridge": plan.MAC(0), "cable": plan.MAC(MaxSlots), "all": plan.String(),
	}
	want := map[string]string{
		"host": "10.201.0.1", "first node": "10.201.0.2", "last node": "10.201.0.201",
		"first Pods": "10.201.1.0/24", "last Pods": "10.201.200.0/24",
		"services": "10.201.240.0/20", "bridge": "02:4c:54:0a:c9:00", "cable": "02:4c:54:0a:c9:c8", "all": "10.201.0.0/16",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("addresses (-want +got):\n%s", diff)
	}
	for _, bad := range []string{"", "10.201.0.0", "10.201.0.0/24", "10.201.1.0/16", "fd00::/16"} {
		if _, err := NewPlan(bad); err == nil {
			t.Errorf("NewPlan(%q) was not refused", bad)
		}
	}
}

func TestChoose(t *testing.T) {
	prefix := netip.MustParsePrefix
	for _, test := range []struct {
		used []netip.Prefix
		want string
	}{
		{nil, "10.201.0.0/16"},
		{[]netip.Prefix{prefix("0.0.0.0/0"), prefix("192.0.2.0/24")}, "10.201.0.0/16"},
		{[]netip.Prefix{prefix("10.201.7.0/24")}, "10.202.0.0/16"},
		{[]netip.Prefix{prefix("10.201.0.1/32"), prefix("10.202.0.0/15"), prefix("10.204.0.0/16")}, "10.205.0.0/16"},
		{[]netip.Prefix{prefix("10.192.0.0/12")}, "10.208.0.0/16"},
	} {
		plan, err := Choose(test.used)
		if err != nil || plan.String() != test.want {
			t.Errorf("Choose(%v) = %v, %v; want %s", test.used, plan, err, test.want)
		}
	}
	if _, err := Choose([]netip.Prefix{prefix("10.0.0.0/8")}); !errors.Is(err, ErrNoNetwork) {
		t.Errorf("with all in use: %v, want ErrNoNetwork", err)
	}
}

func TestParseRoutes(t *testing.T) {
	routes, err := parseRoutes("Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n" +
		"eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n" +
		"lt-1\t0001C90A\t0200C90A\t0003\t0\t0\t0\t00FFFFFF\t0\t0\t0\n")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, route := range routes {
		got = append(got, route.String())
	}
	if diff := cmp.Diff([]string{"0.0.0.0/0", "10.201.1.0/24"}, got); diff != "" {
		t.Errorf("routes (-want +got):\n%s", diff)
	}
}

func TestUsedOfThisMachine(t *testing.T) {
	used, err := Used()
	if err != nil {
		t.Fatal(err)
	}
	if len(used) == 0 {
		t.Error("not even the loopback address is in use")
	}
}

func TestGuestLines(t *testing.T) {
	plan, err := NewPlan("10.201.0.0/16")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Join(GuestLines(plan, 2), "\n") + "\n"
	for _, want := range []string{
		"address add 10.201.0.3/24 dev eth0\n", "route add default via 10.201.0.1\n",
		"route add 10.201.1.0/24 via 10.201.0.2 dev eth0\n", "route add 10.201.200.0/24 via 10.201.0.201 dev eth0\n",
	} {
		if !strings.Contains(lines, want) {
			t.Errorf("no line %q", want)
		}
	}
	if strings.Contains(lines, "route add 10.201.2.0/24") {
		t.Error("a node routes its own Pods away")
	}
}
