package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientauthv1 "k8s.io/client-go/pkg/apis/clientauthentication/v1"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/socialweb-computer/tenant-executor/kube/bounded"
)

// client-go runs the plugin of a kubeconfig's user without a context, with all
// of this process's environment and its stderr, which is the job log. So it is
// run here, by its protocol
// (https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins).

const (
	// loginBudget bounds a plugin: some ask an identity provider.
	loginBudget = 10 * time.Second
	// loginNotice is when it is said what is waited for.
	loginNotice = 2 * time.Second
	// execInfo tells a plugin what is asked of it.
	execInfo = "KUBERNETES_EXEC_INFO"
)

// pluginVersions are those of the protocol that there are.
var pluginVersions = []string{"client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"}

// Logins keep what plugins have answered for as long as it is valid, for the
// look-ups of one process. The zero value is empty.
type Logins struct {
	kept map[string]clientauthv1.ExecCredentialStatus
}

// login logs in by the plugin of the kubeconfig's user, if it has one, in
// place of client-go. Fresh does without what is kept.
func (d Discovery) login(ctx context.Context, config *rest.Config, fresh bool) error {
	plugin := config.ExecProvider
	if plugin == nil {
		return nil
	}
	// Without a plugin the configuration asks nobody.
	defer func() { config.ExecProvider = nil }()
	key := fmt.Sprint(d.Kubeconfig, "\x00", d.Context, "\x00", plugin.Command, plugin.Args)
	got, kept := d.Logins.get(key, time.Now())
	if !kept || fresh {
		var err error
		if got, err = d.ask(ctx, config, plugin); err != nil {
			return fmt.Errorf("%s does not log the driver in: %w", plugin.Command, err)
		}
		d.Logins.put(key, got)
	}
	config.BearerToken = got.Token
	if got.ClientCertificateData != "" {
		config.CertData, config.KeyData = []byte(got.ClientCertificateData), []byte(got.ClientKeyData)
	}
	return nil
}

func (l *Logins) get(key string, now time.Time) (clientauthv1.ExecCredentialStatus, bool) {
	if l == nil {
		return clientauthv1.ExecCredentialStatus{}, false
	}
	got, found := l.kept[key]
	return got, found && (got.ExpirationTimestamp == nil || now.Before(got.ExpirationTimestamp.Time))
}

func (l *Logins) put(key string, got clientauthv1.ExecCredentialStatus) {
	if l == nil {
		return
	}
	if l.kept == nil {
		l.kept = map[string]clientauthv1.ExecCredentialStatus{}
	}
	l.kept[key] = got
}

// ask runs the plugin.
func (d Discovery) ask(ctx context.Context, config *rest.Config, plugin *clientcmdapi.ExecConfig) (clientauthv1.ExecCredentialStatus, error) {
	var none clientauthv1.ExecCredentialStatus
	question, err := pluginQuestion(config, plugin)
	if err != nil {
		return none, err
	}
	env := slices.Clone(d.Environ)
	for _, e := range plugin.Env {
		env = append(env, e.Name+"="+e.Value)
	}
	limited, cancel := context.WithTimeout(ctx, loginBudget)
	defer cancel()
	if d.Waiting != nil {
		notice := time.AfterFunc(loginNotice, func() {
			d.Waiting(fmt.Sprintf("Waiting for %s, by which the driver logs in to the kcp side (for %s at most)", plugin.Command, loginBudget))
		})
		defer notice.Stop()
	}
	answer, err := bounded.Program{Path: plugin.Command, Args: plugin.Args, Env: append(env, execInfo+"="+question)}.Run(limited)
	switch {
	case ctx.Err() != nil:
		return none, ctx.Err()
	case limited.Err() != nil:
		return none, fmt.Errorf("it has not answered within %s", loginBudget)
	case err != nil:
		return none, err
	}
	return parseLogin(answer, plugin.APIVersion)
}

// pluginQuestion is what a plugin is asked.
func pluginQuestion(config *rest.Config, plugin *clientcmdapi.ExecConfig) (string, error) {
	if !slices.Contains(pluginVersions, plugin.APIVersion) {
		return "", fmt.Errorf("its apiVersion is %q: use one of %s", plugin.APIVersion, strings.Join(pluginVersions, ", "))
	}
	if plugin.InteractiveMode == clientcmdapi.AlwaysExecInteractiveMode {
		return "", errors.New("its interactiveMode is Always, and a runner has no terminal: use one that can do without a person")
	}
	question := clientauthv1.ExecCredential{TypeMeta: metav1.TypeMeta{APIVersion: plugin.APIVersion, Kind: "ExecCredential"}}
	if plugin.ProvideClusterInfo {
		// The library's words for the cluster, which it reads from files if need be.
		about, err := rest.ConfigToExecCluster(config)
		if err != nil {
			return "", err
		}
		question.Spec.Cluster = new(clientauthv1.Cluster)
		if err := clientauthv1.Convert_clientauthentication_Cluster_To_v1_Cluster(about, question.Spec.Cluster, nil); err != nil {
			return "", err
		}
	}
	text, err := json.Marshal(question)
	return string(text), err
}

// Errors of an answer. It holds secrets, so none of it is shown.
var (
	errNoLogin   = errors.New("its answer is no ExecCredential with a token, or with a certificate and its key")
	errOtherKind = errors.New("its answer has another apiVersion than the kubeconfig says")
)

func parseLogin(answer []byte, version string) (clientauthv1.ExecCredentialStatus, error) {
	var got clientauthv1.ExecCredential
	if json.Unmarshal(answer, &got) != nil || got.Kind != "ExecCredential" || got.Status == nil {
		return clientauthv1.ExecCredentialStatus{}, errNoLogin
	}
	s := *got.Status
	if (s.ClientCertificateData == "") != (s.ClientKeyData == "") || s.Token == "" && s.ClientKeyData == "" {
		return clientauthv1.ExecCredentialStatus{}, errNoLogin
	}
	if got.APIVersion != version {
		return clientauthv1.ExecCredentialStatus{}, errOtherKind
	}
	return s, nil
}
