// One static program that is each part of Kubernetes by the name under which it is started, as busybox is: the parts
// share nearly all of their code, so that one link and one file serve for all. etcd is one of them: Debian's
// is too old for Kubernetes 1.34 to read consistently from its cache, and its package starts a service.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	_ "k8s.io/client-go/plugin/pkg/client/auth"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

// Another part: its import above, its line here, then `go mod tidy`, which adds what it needs to go.mod and go.sum.
// `build` makes a link for each name.
var parts = map[string]func(){
	"device-plugin":           serveDevices,
	"etcd":                    func() { etcdmain.Main(os.Args) },
	"kube-apiserver":          func() { serve(apiserver.NewAPIServerCommand()) },
	"kube-controller-manager": func() { serve(controllermanager.NewControllerManagerCommand()) },
	"kube-proxy":              func() { serve(proxy.NewProxyCommand()) },
	"kube-scheduler":          func() { serve(scheduler.NewSchedulerCommand()) },
	"kubectl":                 runKubectl,
	"kubelet":                 func() { serve(kubelet.NewKubeletCommand(context.Background())) },
}

func main() {
	if part, known := parts[filepath.Base(os.Args[0])]; known {
		part()
		return
	}
	for name := range parts {
		fmt.Println(name)
	}
}

func serve(command *cobra.Command) {
	os.Exit(cli.Run(command))
}

func runKubectl() {
	if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
		util.CheckErr(err)
	}
}
