// Package part makes one static program each part of Kubernetes by the name under which it is started, as busybox is:
// parts share nearly all of their code, so that one link and one file serve for several.
package part

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
)

// Run starts the part that has the program's name; under any other name it prints the parts' names, for which `build`
// makes links.
func Run(parts map[string]func()) {
	if part, known := parts[filepath.Base(os.Args[0])]; known {
		part()
		return
	}
	for name := range parts {
		fmt.Println(name)
	}
}

// Serve is a part that is a command of Kubernetes. The command is made when the part starts, as making one changes what
// other commands find.
func Serve(command func() *cobra.Command) func() {
	return func() { os.Exit(cli.Run(command())) }
}
