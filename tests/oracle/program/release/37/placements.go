// Placements of a pod group are tried in the order of their first nodes, and of the best ones the first by name is taken.
package main

import (
	"context"
	"sort"

	fwk "k8s.io/kube-scheduler/framework"
)

func (t *tap) RunPlacementGeneratePlugins(ctx context.Context, state fwk.PodGroupCycleState, group fwk.PodGroupInfo, nodes []fwk.NodeInfo) ([]*fwk.Placement, *fwk.Status) {
	found, status := t.Framework.RunPlacementGeneratePlugins(ctx, state, group, nodes)
	if pg := group.GetPodGroup(); pg != nil && pg.Spec.SchedulingConstraints != nil {
		t.r.domains = len(pg.Spec.SchedulingConstraints.Topology) > 0
	}
	place := map[string]int{}
	for i, n := range nodes {
		place[n.Node().Name] = i
	}
	sort.Slice(found, func(i, j int) bool {
		return place[found[i].Nodes[0].Node().Name] < place[found[j].Nodes[0].Node().Name]
	})
	return found, status
}

func (t *tap) RunPlacementScorePlugins(ctx context.Context, state fwk.PodGroupCycleState, group fwk.PodGroupInfo, assignments []*fwk.PodGroupAssignments, states []fwk.PlacementCycleState) ([]fwk.PlacementPluginScores, *fwk.Status) {
	scores, status := t.Framework.RunPlacementScorePlugins(ctx, state, group, assignments, states)
	if !status.IsSuccess() {
		return scores, status
	}
	best := scores[0]
	for _, s := range scores[1:] {
		if s.TotalScore > best.TotalScore || s.TotalScore == best.TotalScore && s.Placement.Name < best.Placement.Name {
			best = s
		}
	}
	return []fwk.PlacementPluginScores{best}, status
}
