package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	device "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// plugin offers devices that do not exist, so that pods which ask for GPUs are counted, placed and held back as on nodes
// that have some. A container is told which it got as NVIDIA's plugin would tell it, and finds nothing there.
type plugin struct {
	device.UnimplementedDevicePluginServer
	devices []*device.Device
}

func serveDevices() {
	resource := flag.String("resource", "nvidia.com/gpu", "the name under which pods ask for them")
	count := flag.Int("count", 1, "how many")
	folder := flag.String("folder", device.DevicePluginPath, "where the kubelet's socket is")
	flag.Parse()
	offered := &plugin{}
	for i := range *count {
		offered.devices = append(offered.devices, &device.Device{ID: fmt.Sprintf("GPU-%d", i), Health: device.Healthy})
	}
	if err := offered.run(*folder, *resource); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// A kubelet that starts removes all sockets from its folder and waits to be asked anew.
func (p *plugin) run(folder, resource string) error {
	socket := filepath.Join(folder, "trainyard-test.sock")
	for {
		_ = os.Remove(socket)
		listener, err := net.Listen("unix", socket)
		if err != nil {
			return err
		}
		server := grpc.NewServer()
		device.RegisterDevicePluginServer(server, p)
		go func() { _ = server.Serve(listener) }()
		for isKnown := false; exists(socket); time.Sleep(200 * time.Millisecond) {
			isKnown = isKnown || register(folder, filepath.Base(socket), resource) == nil
		}
		server.Stop()
	}
}

func register(folder, endpoint, resource string) error {
	kubelet, err := grpc.NewClient("unix://"+filepath.Join(folder, "kubelet.sock"),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer kubelet.Close()
	patience, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_, err = device.NewRegistrationClient(kubelet).Register(patience, &device.RegisterRequest{
		Version: device.Version, Endpoint: endpoint, ResourceName: resource})
	return err
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func (p *plugin) GetDevicePluginOptions(context.Context, *device.Empty) (*device.DevicePluginOptions, error) {
	return &device.DevicePluginOptions{}, nil
}

func (p *plugin) ListAndWatch(_ *device.Empty, stream device.DevicePlugin_ListAndWatchServer) error {
	if err := stream.Send(&device.ListAndWatchResponse{Devices: p.devices}); err != nil {
		return err
	}
	<-stream.Context().Done()
	return nil
}

func (p *plugin) Allocate(_ context.Context, asked *device.AllocateRequest) (*device.AllocateResponse, error) {
	answer := &device.AllocateResponse{}
	for _, container := range asked.ContainerRequests {
		answer.ContainerResponses = append(answer.ContainerResponses, &device.ContainerAllocateResponse{
			Envs: map[string]string{"NVIDIA_VISIBLE_DEVICES": strings.Join(container.DevicesIds, ",")}})
	}
	return answer, nil
}
