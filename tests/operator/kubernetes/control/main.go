// What serves the API of Kubernetes, and its client. etcd is one of them: Debian's is too old for Kubernetes 1.34 to read
// consistently from its cache, and its package starts a service.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
	_ "k8s.io/client-go/plugin/pkg/client/auth"
	"k8s.io/component-base/cli"
	kubectl "k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"

	"trainyard/kubernetes/part"
)

// Another part: its import above, its line here, then `go mod tidy`, which adds what it needs to go.mod and go.sum.
func main() {
	part.Run(map[string]func(){
		"etcd":                    func() { etcdmain.Main(os.Args) },
		"kube-apiserver":          part.Serve(apiserver.NewAPIServerCommand),
		"kube-controller-manager": part.Serve(controllermanager.NewControllerManagerCommand),
		"kubectl":                 runKubectl,
	})
}

func runKubectl() {
	if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
		util.CheckErr(err)
	}
}
