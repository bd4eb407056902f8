//go:build soak

package docs

import (
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"
)

// manifests are the decoded objects of a file of deploy/kubernetes.
type manifests struct {
	Deployment            apps.Deployment
	Service               core.Service
	PersistentVolumeClaim core.PersistentVolumeClaim
	NetworkPolicy         networking.NetworkPolicy
	PodDisruptionBudget   policy.PodDisruptionBudget
}

// readManifests decodes a file. A member that Kubernetes does not have, or a second object of a kind, fails.
func readManifests(t *testing.T, name string) (m manifests, kinds []string) {
	t.Helper()
	for document := range strings.SplitSeq(read(t, "deploy/kubernetes/"+name), "\n---\n") {
		var head struct{ Kind, APIVersion string }
		must(t, yaml.Unmarshal([]byte(document), &head))
		object := reflect.ValueOf(&m).Elem().FieldByName(head.Kind)
		if !object.IsValid() || slices.Contains(kinds, head.Kind) {
			t.Fatalf("%s has the kind %q, perhaps twice", name, head.Kind)
		}
		kinds = append(kinds, head.Kind)
		if err := yaml.UnmarshalStrict([]byte(document), object.Addr().Interface()); err != nil {
			t.Errorf("%s: %s: %v", name, head.Kind, err)
		}
		if want := map[string]string{"Deployment": "apps/v1", "NetworkPolicy": "networking.k8s.io/v1", "PodDisruptionBudget": "policy/v1"}[head.Kind]; want != "" && head.APIVersion != want || want == "" && head.APIVersion != "v1" {
			t.Errorf("%s: %s has the version %s", name, head.Kind, head.APIVersion)
		}
	}
	return m, kinds
}

func TestManifests_OneInstance(t *testing.T) {
	m, kinds := readManifests(t, "one.yaml")
	if !slices.Equal(kinds, []string{"PersistentVolumeClaim", "Deployment", "Service", "NetworkPolicy"}) {
		t.Errorf("the kinds are %q", kinds)
	}
	spec := m.Deployment.Spec
	if *spec.Replicas != 1 || spec.Strategy.Type != apps.RecreateDeploymentStrategyType {
		t.Errorf("%d replicas with the strategy %s could open the file twice", *spec.Replicas, spec.Strategy.Type)
	}
	container := expectRestricted(t, m)
	database := variable(t, container, "RELAYERD_DB").Value
	for _, volume := range spec.Template.Spec.Volumes {
		for _, mount := range container.VolumeMounts {
			if volume.PersistentVolumeClaim != nil && mount.Name == volume.Name && (volume.PersistentVolumeClaim.ClaimName != m.PersistentVolumeClaim.Name || filepath.Dir(database) != mount.MountPath || mount.ReadOnly) {
				t.Errorf("the database %s is not on the volume %+v", database, mount)
			}
		}
	}
	if len(m.NetworkPolicy.Spec.Egress) != 0 {
		t.Errorf("the server may connect to %v", m.NetworkPolicy.Spec.Egress)
	}
}

func TestManifests_SeveralInstances(t *testing.T) {
	m, kinds := readManifests(t, "several.yaml")
	if !slices.Equal(kinds, []string{"Deployment", "PodDisruptionBudget", "Service", "NetworkPolicy"}) {
		t.Errorf("the kinds are %q", kinds)
	}
	spec := m.Deployment.Spec
	if *spec.Replicas < 2 || spec.Strategy.RollingUpdate.MaxUnavailable.IntValue() != 0 || m.PodDisruptionBudget.Spec.MinAvailable.IntValue() < 1 {
		t.Errorf("an update or a drained node leaves no instance: %+v", spec.Strategy.RollingUpdate)
	}
	container := expectRestricted(t, m)
	if from := variable(t, container, "RELAYERD_DB").ValueFrom; from == nil || from.SecretKeyRef == nil {
		t.Error("the URL of the database, which may have a password, is not in a secret")
	}
	if delay := variable(t, container, "RELAYERD_DRAIN_DELAY").Value; delay != "10s" || *spec.Template.Spec.TerminationGracePeriodSeconds < 10+15+5 {
		t.Errorf("the pod is killed before it has drained: delay %s", delay)
	}
}

func variable(t *testing.T, container core.Container, name string) core.EnvVar {
	t.Helper()
	for _, each := range container.Env {
		if each.Name == name {
			return each
		}
	}
	t.Fatalf("the container has no variable %s", name)
	return core.EnvVar{}
}

// expectRestricted checks what both files have in common, and returns the container.
func expectRestricted(t *testing.T, m manifests) core.Container {
	t.Helper()
	pod := m.Deployment.Spec.Template.Spec
	if len(pod.Containers) != 1 || *pod.AutomountServiceAccountToken || *pod.EnableServiceLinks {
		t.Errorf("the pod has %d containers, a token of Kubernetes, or variables of services", len(pod.Containers))
	}
	if s := pod.SecurityContext; !*s.RunAsNonRoot || *s.RunAsUser != 65532 || *s.FSGroup != 65532 || s.SeccompProfile.Type != core.SeccompProfileTypeRuntimeDefault {
		t.Errorf("the pod has the security context %+v", s)
	}
	container := pod.Containers[0]
	if s := container.SecurityContext; *s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem || !slices.Equal(s.Capabilities.Drop, []core.Capability{"ALL"}) {
		t.Errorf("the container has the security context %+v", s)
	}
	if container.LivenessProbe.HTTPGet.Path != "/healthz/live" || container.StartupProbe.HTTPGet.Path != "/healthz/live" || container.ReadinessProbe.HTTPGet.Path != "/healthz/ready" {
		t.Errorf("the probes are %v, %v and %v", container.LivenessProbe, container.StartupProbe, container.ReadinessProbe)
	}
	if container.Resources.Limits.Memory().IsZero() {
		t.Error("the garbage collector has no limit of memory")
	}
	for _, name := range []string{"RELAYERD_TOKENS_FILE", "RELAYERD_KEYS"} {
		path := variable(t, container, name).Value
		if !slices.ContainsFunc(container.VolumeMounts, func(mount core.VolumeMount) bool {
			// A mount of one file would not show a changed secret.
			return mount.MountPath == filepath.Dir(path) && mount.ReadOnly && mount.SubPath == ""
		}) {
			t.Errorf("%s=%s is on no volume", name, path)
		}
	}
	for _, volume := range pod.Volumes {
		// The key file must not be readable by all.
		if volume.Secret != nil && *volume.Secret.DefaultMode&0o027 != 0 {
			t.Errorf("the secret has the mode %o", *volume.Secret.DefaultMode)
		}
	}
	labels := m.Deployment.Spec.Template.Labels
	if !reflect.DeepEqual(m.Deployment.Spec.Selector.MatchLabels, labels) || !reflect.DeepEqual(m.Service.Spec.Selector, labels) || !reflect.DeepEqual(m.NetworkPolicy.Spec.PodSelector.MatchLabels, labels) {
		t.Errorf("a selector does not match the labels %v", labels)
	}
	rules := m.NetworkPolicy.Spec
	if !slices.Equal(rules.PolicyTypes, []networking.PolicyType{networking.PolicyTypeIngress, networking.PolicyTypeEgress}) || len(rules.Ingress) != 2 {
		t.Errorf("the NetworkPolicy is %+v", rules)
	}
	for _, rule := range rules.Ingress {
		port := rule.Ports[0].Port.StrVal
		if len(rule.From) == 0 || !slices.ContainsFunc(container.Ports, func(p core.ContainerPort) bool { return p.Name == port }) {
			t.Errorf("the port %q is for everybody, or does not exist", port)
		}
	}
	return container
}
