package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// workspace reads the kubeconfig and makes a client of what it says. Fresh logs
// in anew.
func (d Discovery) workspace(ctx context.Context, fresh bool) (*workspace, error) {
	unusable := func(err error) error {
		return &FindError{Kind: Unusable, Text: "the kubeconfig of the kcp side", Err: err}
	}
	file, err := clientcmd.LoadFromFile(d.Kubeconfig)
	if err != nil {
		return nil, unusable(&FileError{Path: d.Kubeconfig, Err: err})
	}
	if err := clientcmd.ResolveLocalPaths(file); err != nil {
		return nil, unusable(&FileError{Path: d.Kubeconfig, Err: err})
	}
	name := d.Context
	if name == "" {
		name = file.CurrentContext
	}
	entry, found := file.Contexts[name]
	if !found {
		return nil, unusable(&FileError{Path: d.Kubeconfig, Err: fmt.Errorf("it has no context %q; it has %s",
			name, strings.Join(quoted(slices.Sorted(maps.Keys(file.Contexts))), ", "))})
	}
	if err := d.checkUser(file.AuthInfos[entry.AuthInfo]); err != nil {
		return nil, unusable(err)
	}
	loader := clientcmd.NewNonInteractiveClientConfig(*file, name, &clientcmd.ConfigOverrides{}, nil)
	config, err := loader.ClientConfig()
	if err != nil {
		return nil, unusable(&FileError{Path: d.Kubeconfig, Err: err})
	}
	if err := checkServer(config); err != nil {
		return nil, unusable(&FileError{Path: d.Kubeconfig, Err: err})
	}
	loggedIn := config.ExecProvider != nil
	if err := d.login(ctx, config, fresh); ctx.Err() != nil {
		return nil, ctx.Err()
	} else if err != nil {
		return nil, &FindError{Kind: NoLogin, Text: fmt.Sprintf("the kcp side at %s (%s)", config.Host, d.Kubeconfig), Err: err}
	}
	w := &workspace{discovery: d, config: d.quiet(config), namespace: entry.Namespace, loggedIn: loggedIn}
	if w.namespace == "" {
		w.namespace = "default"
	}
	client, err := httpClient(w.config)
	if err == nil {
		w.client, err = rest.UnversionedRESTClientForConfigAndClient(w.config, client)
	}
	if err != nil {
		return nil, unusable(&FileError{Path: d.Kubeconfig, Err: err})
	}
	return w, nil
}

// checkServer refuses a server that anybody can pass for: the user's token
// would be shown to it, and what it says of the cluster be believed.
func checkServer(config *rest.Config) error {
	server, err := url.Parse(config.Host)
	switch {
	case config.Insecure:
		return errors.New("it has insecure-skip-tls-verify, so that whoever answers gets the user's token: write the server's CA into certificate-authority-data instead")
	case err != nil || server.Scheme != "https":
		return fmt.Errorf("its server is %q: it has to start with https://, since the driver shows a token or a certificate", config.Host)
	}
	return nil
}

// checkUser refuses secrets that other users of the host can read: those of
// the kubeconfig itself, and those in files that it names.
func (d Discovery) checkUser(user *clientcmdapi.AuthInfo) error {
	if user == nil {
		return nil
	}
	if len(user.ClientKeyData) > 0 || user.Token != "" || user.Password != "" {
		if err := checkPrivate(d.Kubeconfig); err != nil {
			return err
		}
	}
	for _, path := range []string{user.ClientKey, user.TokenFile} {
		if path == "" {
			continue
		}
		if err := checkPrivate(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// quiet sets what a kubeconfig does not say.
func (d Discovery) quiet(config *rest.Config) *rest.Config {
	config.UserAgent = d.UserAgent
	config.Wrap(boundAnswers)
	config.QPS, config.Burst = queriesASecond, queryBurst
	config.WarningHandler = rest.NoWarnings{}
	// Of all kinds only Status is decoded by the library.
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	if config.Proxy == nil {
		// A kubeconfig names a proxy with proxy-url; the environment's is for
		// GitLab and registries.
		config.Proxy = noProxy
	}
	return config
}
