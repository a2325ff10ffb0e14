// The volumes of one pod in PreBind: the writes of VolumeBinding, and its check after each change of the cluster.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strconv"
	"unsafe"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumebinding"
)

//go:linkname bindAPIUpdate k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumebinding.(*volumeBinder).bindAPIUpdate
func bindAPIUpdate(b unsafe.Pointer, ctx context.Context, pod *v1.Pod, bindings []*volumebinding.BindingInfo, claims []*v1.PersistentVolumeClaim) error

//go:linkname checkBindings k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumebinding.(*volumeBinder).checkBindings
func checkBindings(b unsafe.Pointer, logger klog.Logger, pod *v1.Pod, bindings []*volumebinding.BindingInfo, claims []*v1.PersistentVolumeClaim) (bool, error)

type prebindRecord struct {
	caseRecord
	Node  string `json:"node"`
	Steps [][]op `json:"steps"` // each with objects to create or update, or to delete, before a check
}

type prebindAnswer struct {
	ID      string            `json:"id"`
	Refused string            `json:"refused,omitempty"`
	Reserve string            `json:"reserve,omitempty"` // why the node cannot be reserved
	Writes  []json.RawMessage `json:"writes"`            // in order, as stored
	Checks  []string          `json:"checks"`            // "bound", "waits", or the error; one of each step
	Again   map[string]any    `json:"again,omitempty"`   // after an error: the verdicts of the next attempt
}

func prebindAnswerOf(line []byte) prebindAnswer {
	var rec prebindRecord
	if err := json.Unmarshal(line, &rec); err != nil {
		return prebindAnswer{Refused: err.Error()}
	}
	a := prebindAnswer{ID: rec.ID, Writes: []json.RawMessage{}, Checks: []string{}}
	if err := a.run(&rec); err != nil {
		a.Refused = err.Error()
	}
	return a
}

func (a *prebindAnswer) run(rec *prebindRecord) error {
	cfg, err := readConfig(rec.Config)
	if err != nil {
		return err
	}
	var objects []runtime.Object
	for _, raw := range rec.Objects {
		obj, err := decode(raw)
		if err != nil {
			return err
		}
		objects = append(objects, obj)
	}
	target, err := decode(rec.Pod)
	if err != nil {
		return err
	}
	w, err := newCaseWorld(cfg, 1, objects, target.(*v1.Pod), true)
	if err != nil {
		return err
	}
	defer w.close()
	found := inner(reflect.ValueOf(w.f), "pluginsMap").MapIndex(reflect.ValueOf("VolumeBinding"))
	if !found.IsValid() {
		return errors.New("the profile has no VolumeBinding")
	}
	plugin := found.Interface().(*volumebinding.VolumeBinding)
	binder := reflect.ValueOf(plugin.Binder).UnsafePointer()
	client := inner(reflect.ValueOf(plugin.Binder), "kubeClient").Interface().(*fake.Clientset)
	client.PrependReactor("update", "*", func(act clienttesting.Action) (bool, runtime.Object, error) {
		obj := act.(clienttesting.UpdateAction).GetObject().DeepCopyObject()
		m, err := meta.Accessor(obj)
		if err != nil {
			return true, nil, err
		}
		number, _ := strconv.Atoi(m.GetResourceVersion())
		m.SetResourceVersion(strconv.Itoa(number + 1))
		a.Writes = append(a.Writes, json.RawMessage(encode(obj)))
		return true, obj, nil
	})

	state := w.newState()
	verdict, err := w.verdicts(state)
	if err != nil {
		return err
	}
	if s, ok := verdict[rec.Node]; !ok || s != nil {
		return fmt.Errorf("the node is not feasible: %s", encode(verdict))
	}
	pod := w.pod.DeepCopy()
	pod.Spec.NodeName = rec.Node
	if s := w.f.RunReservePluginsReserve(w.ctx, state, pod, rec.Node); !s.IsSuccess() {
		a.Reserve = s.AsError().Error()
		return nil
	}
	data, err := state.Read("VolumeBinding")
	if err != nil {
		return err
	}
	volumes := field[map[string]*volumebinding.PodVolumes](data, "podVolumesByNode")[rec.Node]
	if volumes == nil || field[bool](data, "allBound") {
		return errors.New("all volumes are bound")
	}
	bindings := volumes.StaticBindings
	claims := make([]*v1.PersistentVolumeClaim, 0, len(volumes.DynamicProvisions))
	for _, one := range volumes.DynamicProvisions {
		claims = append(claims, one.PVC)
	}
	if bindings == nil {
		bindings = []*volumebinding.BindingInfo{}
	}
	if err := bindAPIUpdate(binder, w.ctx, pod, bindings, claims); err != nil {
		return err
	}
	for _, changes := range rec.Steps {
		for _, change := range changes {
			if err := w.change(change); err != nil {
				return err
			}
		}
		bound, err := checkBindings(binder, klog.FromContext(w.ctx), pod, bindings, claims)
		switch {
		case err != nil:
			a.Checks = append(a.Checks, err.Error())
			w.f.RunReservePluginsUnreserve(w.ctx, state, pod, rec.Node)
			a.Again, err = w.verdicts(w.newState())
			return err
		case bound:
			a.Checks = append(a.Checks, "bound")
			return nil
		default:
			a.Checks = append(a.Checks, "waits")
		}
	}
	return nil
}

// verdicts runs PreFilter, and the filters of all nodes: null where a node is feasible.
func (w *caseWorld) verdicts(state fwk.CycleState) (map[string]any, error) {
	if err := w.updateSnapshot(); err != nil {
		return nil, err
	}
	nodes, err := w.snapshot.NodeInfos().List()
	if err != nil {
		return nil, err
	}
	found := map[string]any{}
	if len(nodes) == 0 {
		return found, nil // the scheduler asks no plugin then
	}
	narrowed, s, _ := w.f.RunPreFilterPlugins(w.ctx, state, w.pod)
	if !s.IsSuccess() {
		found["prefilter"] = s.Message()
		return found, nil
	}
	for _, node := range nodes {
		if narrowed != nil && !narrowed.AllNodes() && !narrowed.NodeNames.Has(node.Node().Name) {
			continue
		}
		if s := w.f.RunFilterPlugins(w.ctx, state, w.pod, node); s.IsSuccess() {
			found[node.Node().Name] = nil
		} else {
			found[node.Node().Name] = s.Message()
		}
	}
	return found, nil
}

// change tells the informers of a new version of an object, or of its end.
func (w *caseWorld) change(o op) error {
	obj, err := decode(o.Object)
	if err != nil {
		return err
	}
	inf := w.factory.of(obj)
	old, known, err := inf.indexer.Get(obj)
	switch {
	case err != nil:
		return err
	case o.Op == "delete":
		inf.Delete(old)
	case known:
		inf.Update(old, obj)
	default:
		inf.Add(obj)
	}
	return nil
}

// prebindMode answers the records of the input one after another.
func prebindMode(c command, args []string) error {
	if err := c.parse(args); err != nil {
		return err
	}
	return eachLine(os.Stdin, func(line []byte) error {
		_, err := fmt.Println(encode(prebindAnswerOf(line)))
		return err
	})
}
