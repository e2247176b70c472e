// What nodes run, and what places pods on them.
package main

import (
	"context"

	"github.com/spf13/cobra"
	_ "k8s.io/client-go/plugin/pkg/client/auth"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"

	"trainyard/kubernetes/part"
)

func main() {
	part.Run(map[string]func(){
		"device-plugin":  serveDevices,
		"kube-proxy":     part.Serve(proxy.NewProxyCommand),
		"kube-scheduler": part.Serve(func() *cobra.Command { return scheduler.NewSchedulerCommand() }),
		"kubelet":        part.Serve(func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) }),
	})
}
