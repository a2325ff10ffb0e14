// The workloads of `kschedd bench`, and two of ours in which opportunistic batching is at its best.
package main

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const zone, hostname = "topology.kubernetes.io/zone", "kubernetes.io/hostname"

// workload is the objects of one workload.
type workload struct {
	namespaces []*v1.Namespace
	nodes      []*v1.Node
	init       []*v1.Pod
	pods       []*v1.Pod
}

// lcg is the generator of random numbers of `kschedd bench`.
type lcg uint64

func (s *lcg) rnd(n uint64) int {
	*s = lcg(uint64(*s)*6364136223846793005 + 1442695040888963407)
	return int((uint64(*s) >> 33) % n)
}

func makeNode(i int, cpu, mem string) *v1.Node {
	name := fmt.Sprintf("node-%d", i)
	size := v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu), v1.ResourceMemory: resource.MustParse(mem), v1.ResourcePods: resource.MustParse("110")}
	return &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Labels: map[string]string{hostname: name}},
		Status:     v1.NodeStatus{Capacity: size, Allocatable: size, Conditions: []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}}},
	}
}

func makePod(namespace, name, cpu, mem string) *v1.Pod {
	size := v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu), v1.ResourceMemory: resource.MustParse(mem)}
	grace := int64(0)
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(namespace + "/" + name)},
		Spec: v1.PodSpec{SchedulerName: "default-scheduler", RestartPolicy: v1.RestartPolicyAlways, TerminationGracePeriodSeconds: &grace,
			Containers: []v1.Container{{Name: "pause", Image: "registry.k8s.io/pause:3.10", Ports: []v1.ContainerPort{{ContainerPort: 80, Protocol: v1.ProtocolTCP}},
				Resources: v1.ResourceRequirements{Requests: size, Limits: size.DeepCopy()}}}},
	}
}

func affinity(p *v1.Pod) *v1.Affinity {
	if p.Spec.Affinity == nil {
		p.Spec.Affinity = &v1.Affinity{}
	}
	return p.Spec.Affinity
}

func selector(k, v string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{k: v}}
}

func term(k, v, key string, namespaces ...string) v1.PodAffinityTerm {
	return v1.PodAffinityTerm{LabelSelector: selector(k, v), TopologyKey: key, Namespaces: namespaces}
}

// shape gives a standard pod one of the shapes.
func shape(p *v1.Pod, kind string) *v1.Pod {
	color := func(c string) { p.Labels = map[string]string{"color": c} }
	both := []string{"sched-1", "sched-0"}
	spread := func(what v1.UnsatisfiableConstraintAction) {
		color("blue")
		p.Spec.TopologySpreadConstraints = []v1.TopologySpreadConstraint{{MaxSkew: 5, TopologyKey: zone, WhenUnsatisfiable: what, LabelSelector: selector("color", "blue")}}
	}
	switch kind {
	case "default":
	case "node-affinity":
		affinity(p).NodeAffinity = &v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{
			{MatchExpressions: []v1.NodeSelectorRequirement{{Key: zone, Operator: v1.NodeSelectorOpIn, Values: []string{"zone1", "zone2"}}}}}}}
	case "spread-hard":
		spread(v1.DoNotSchedule)
	case "spread-soft":
		spread(v1.ScheduleAnyway)
	case "pod-affinity":
		color("blue")
		affinity(p).PodAffinity = &v1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{term("color", "blue", zone, both...)}}
	case "pod-anti-affinity":
		color("green")
		affinity(p).PodAntiAffinity = &v1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{term("color", "green", hostname, both...)}}
	case "pref-pod-affinity":
		color("red")
		affinity(p).PodAffinity = &v1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []v1.WeightedPodAffinityTerm{{Weight: 1, PodAffinityTerm: term("color", "red", hostname, both...)}}}
	case "pref-pod-anti-affinity":
		color("yellow")
		affinity(p).PodAntiAffinity = &v1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []v1.WeightedPodAffinityTerm{{Weight: 1, PodAffinityTerm: term("color", "yellow", hostname, both...)}}}
	default:
		panic(kind)
	}
	return p
}

func heterogeneousNode(i int, s *lcg) *v1.Node {
	sz, z, d, t := s.rnd(4), s.rnd(3), s.rnd(3), s.rnd(10)
	n := makeNode(i, []string{"4", "8", "16", "32"}[sz], []string{"16Gi", "32Gi", "64Gi", "128Gi"}[sz])
	n.Labels[zone] = []string{"zone-a", "zone-b", "zone-c"}[z]
	n.Labels["disktype"] = []string{"ssd", "hdd", "nvme"}[d]
	n.Labels["size"] = fmt.Sprintf("s%d", sz)
	if t < 3 {
		n.Spec.Taints = [][]v1.Taint{{{Key: "dedicated", Value: "batch", Effect: v1.TaintEffectNoSchedule}}, {{Key: "dedicated", Value: "gpu", Effect: v1.TaintEffectNoSchedule}},
			{{Key: "spot", Value: "true", Effect: v1.TaintEffectPreferNoSchedule}}}[t]
	}
	return n
}

func heterogeneousPod(name string, s *lcg) *v1.Pod {
	cpu, mem := 50+10*s.rnd(96), 64+16*s.rnd(125)
	k := s.rnd(10)
	za, zi, da, di := s.rnd(100), s.rnd(3), s.rnd(100), s.rnd(3)
	tl, sp, pa, wt, na, nw := s.rnd(100), s.rnd(100), s.rnd(100), 1+s.rnd(100), s.rnd(100), 1+s.rnd(100)
	p := makePod("default", name, fmt.Sprintf("%dm", cpu), fmt.Sprintf("%dMi", mem))
	app := fmt.Sprintf("app-%d", k)
	p.Labels = map[string]string{"app": app}
	p.Spec.NodeSelector = map[string]string{}
	if za < 30 {
		p.Spec.NodeSelector[zone] = []string{"zone-a", "zone-b", "zone-c"}[zi]
	}
	if da < 30 {
		p.Spec.NodeSelector["disktype"] = []string{"ssd", "hdd", "nvme"}[di]
	}
	if len(p.Spec.NodeSelector) == 0 {
		p.Spec.NodeSelector = nil
	}
	switch {
	case tl < 20:
		p.Spec.Tolerations = []v1.Toleration{{Key: "dedicated", Operator: v1.TolerationOpEqual, Value: "batch", Effect: v1.TaintEffectNoSchedule}}
	case tl < 30:
		p.Spec.Tolerations = []v1.Toleration{{Key: "dedicated", Operator: v1.TolerationOpExists}}
	case tl < 40:
		p.Spec.Tolerations = []v1.Toleration{{Key: "spot", Operator: v1.TolerationOpEqual, Value: "true", Effect: v1.TaintEffectPreferNoSchedule}}
	}
	constraint := func(skew int32, key string, what v1.UnsatisfiableConstraintAction) {
		p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, v1.TopologySpreadConstraint{MaxSkew: skew, TopologyKey: key, WhenUnsatisfiable: what, LabelSelector: selector("app", app)})
	}
	if sp < 40 {
		constraint(1, zone, v1.ScheduleAnyway)
	}
	if sp < 20 {
		constraint(2, hostname, v1.ScheduleAnyway)
	}
	if sp >= 40 && sp < 50 {
		constraint(5, zone, v1.DoNotSchedule)
	}
	switch {
	case pa < 30:
		affinity(p).PodAntiAffinity = &v1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []v1.WeightedPodAffinityTerm{{Weight: int32(wt), PodAffinityTerm: term("app", app, hostname)}}}
	case pa < 40:
		affinity(p).PodAffinity = &v1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []v1.WeightedPodAffinityTerm{{Weight: int32(wt), PodAffinityTerm: term("app", fmt.Sprintf("app-%d", (k+1)%10), zone)}}}
	case pa < 43:
		affinity(p).PodAntiAffinity = &v1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{term("app", app, hostname)}}
	}
	if na < 20 {
		affinity(p).NodeAffinity = &v1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []v1.PreferredSchedulingTerm{{Weight: int32(nw), Preference: v1.NodeSelectorTerm{
			MatchExpressions: []v1.NodeSelectorRequirement{{Key: "disktype", Operator: v1.NodeSelectorOpIn, Values: []string{"ssd", "nvme"}}}}}}}
	}
	return p
}

// makeWorkload builds a workload of N nodes, I init pods and P measured pods (negative: the defaults).
func makeWorkload(name string, N, I, P int) *workload {
	w := &workload{}
	for _, n := range []string{"sched-0", "sched-1", "default"} {
		w.namespaces = append(w.namespaces, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: n, UID: types.UID(n)}})
	}
	if I < 0 {
		I = map[string]int{"SchedulingPodAntiAffinity": N / 5, "MixedSchedulingBasePod": 2 * N, "PreemptionBasic": 4 * N}[name]
		if I == 0 {
			I = N
		}
	}
	if P < 0 {
		P = 2000
		if name == "PreemptionBasic" {
			P = 1000
		}
	}
	nodeStream, initStream, podStream := lcg(1), lcg(2), lcg(3)
	if name == "Heterogeneous" {
		for i := 0; i < N; i++ {
			w.nodes = append(w.nodes, heterogeneousNode(i, &nodeStream))
		}
		for i := 0; i < I; i++ {
			p := heterogeneousPod(fmt.Sprintf("init-%d", i), &initStream)
			p.Spec.NodeName = fmt.Sprintf("node-%d", i%N)
			w.init = append(w.init, p)
		}
		for i := 0; i < P; i++ {
			w.pods = append(w.pods, heterogeneousPod(fmt.Sprintf("pod-%d", i), &podStream))
		}
		return w
	}
	initShape := map[string]string{"SchedulingNodeAffinity": "node-affinity", "SchedulingPodAntiAffinity": "pod-anti-affinity", "SchedulingPodAffinity": "pod-affinity",
		"SchedulingPreferredPodAffinity": "pref-pod-affinity", "SchedulingPreferredPodAntiAffinity": "pref-pod-anti-affinity"}[name]
	podShape := initShape
	if s := map[string]string{"TopologySpreading": "spread-hard", "PreferredTopologySpreading": "spread-soft"}[name]; s != "" {
		podShape = s
	}
	if initShape == "" {
		initShape = "default"
	}
	if podShape == "" {
		podShape = "default"
	}
	for i := 0; i < N; i++ {
		n := makeNode(i, "4", "32Gi")
		switch name {
		case "SchedulingNodeAffinity", "SchedulingPodAffinity", "MixedSchedulingBasePod":
			n.Labels[zone] = "zone1"
		case "TopologySpreading", "PreferredTopologySpreading":
			n.Labels[zone] = fmt.Sprintf("moon-%d", i%3+1)
		case "SchedulingTaints":
			if i%5 == 0 {
				n.Spec.Taints = []v1.Taint{{Key: "dedicated", Value: "special", Effect: v1.TaintEffectNoSchedule}}
			} else if i%5 == 1 {
				n.Spec.Taints = []v1.Taint{{Key: "maintenance", Value: "soon", Effect: v1.TaintEffectPreferNoSchedule}}
			}
		}
		w.nodes = append(w.nodes, n)
	}
	for i := 0; i < I; i++ {
		ns, cpu, s := "sched-0", "100m", initShape
		if name == "TopologySpreading" || name == "PreferredTopologySpreading" {
			ns = "sched-1"
		}
		if name == "PreemptionBasic" {
			cpu = "900m"
		}
		if name == "MixedSchedulingBasePod" {
			s = []string{"default", "pod-affinity", "pod-anti-affinity", "pref-pod-affinity", "pref-pod-anti-affinity"}[i/((I+4)/5)]
		}
		p := shape(makePod(ns, fmt.Sprintf("init-%d", i), cpu, "500Mi"), s)
		p.Spec.NodeName = fmt.Sprintf("node-%d", i%N)
		if name == "PreemptionBasic" {
			at := metav1.NewTime(time.Unix(1704067200+int64(i), 0))
			p.Status.StartTime = &at
		}
		w.init = append(w.init, p)
	}
	for i := 0; i < P; i++ {
		cpu := "100m"
		if name == "PreemptionBasic" || name == "OnePerNode" { // OnePerNode: no second one fits on a node
			cpu = "3000m"
		}
		p := shape(makePod("sched-1", fmt.Sprintf("pod-%d", i), cpu, "500Mi"), podShape)
		switch name {
		case "PreemptionBasic":
			ten := int32(10)
			p.Spec.Priority = &ten
		case "SchedulingTaints":
			if i%2 == 0 {
				p.Spec.Tolerations = []v1.Toleration{{Key: "dedicated", Operator: v1.TolerationOpEqual, Value: "special", Effect: v1.TaintEffectNoSchedule}}
			}
		case "SchedulingDaemonset":
			affinity(p).NodeAffinity = &v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{
				{MatchFields: []v1.NodeSelectorRequirement{{Key: "metadata.name", Operator: v1.NodeSelectorOpIn, Values: []string{fmt.Sprintf("node-%d", i%N)}}}}}}}
			for _, t := range []string{"not-ready", "unreachable", "disk-pressure", "memory-pressure", "pid-pressure", "unschedulable"} {
				effect := v1.TaintEffectNoSchedule
				if t == "not-ready" || t == "unreachable" {
					effect = v1.TaintEffectNoExecute
				}
				p.Spec.Tolerations = append(p.Spec.Tolerations, v1.Toleration{Key: "node.kubernetes.io/" + t, Operator: v1.TolerationOpExists, Effect: effect})
			}
		}
		w.pods = append(w.pods, p)
	}
	return w
}
