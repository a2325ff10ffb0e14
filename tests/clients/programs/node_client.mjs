// The JavaScript client, @kubernetes/client-node. Arguments: the kubeconfig.
import * as k8s from "@kubernetes/client-node";

const config = new k8s.KubeConfig();
config.loadFromFile(process.argv[2]);
const [core, apps] = [config.makeApiClient(k8s.CoreV1Api), config.makeApiClient(k8s.AppsV1Api)];
const [batch, custom] = [config.makeApiClient(k8s.BatchV1Api), config.makeApiClient(k8s.CustomObjectsApi)];
const extensions = config.makeApiClient(k8s.ApiextensionsV1Api);
const [namespace, name, group] = ["default", "web", "example.com"];

const report = (step, value) => console.log(`${step}: ${value}`);
const template = (restartPolicy) => ({
  metadata: { labels: { app: name }, annotations: { "kschedd.io/logs": "hello\n" } },
  spec: { restartPolicy, containers: [{ name: "c", image: "example/app" }] },
});

// Resolve with the first watched object that satisfies the condition; reject when the watch ends before.
const until = (path, query, condition) =>
  new Promise((resolve, reject) => {
    const controller = new k8s.Watch(config).watch(
      path,
      query,
      (type, object) => {
        if (!condition(object, type)) return;
        resolve(object);
        controller.then((found) => found.abort());
      },
      (error) => reject(error ?? "the watch has ended"),
    );
  });
const DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments";
const only = { fieldSelector: `metadata.name=${name}` };

const spec = { replicas: 2, selector: { matchLabels: { app: name } }, template: template("Always") };
await apps.createNamespacedDeployment({ namespace, body: { metadata: { name }, spec } });
const available = await until(DEPLOYMENTS, only, (each) => each.status?.availableReplicas === 2);
report("available", available.status.availableReplicas);
const pods = (await core.listNamespacedPod({ namespace, labelSelector: `app=${name}` })).items;
report("pods", pods.length);
report("log", (await core.readNamespacedPodLog({ namespace, name: pods[0].metadata.name })).trim());

const patch = (body, type) =>
  apps.patchNamespacedDeployment(
    { namespace, name, body, fieldManager: "tests" },
    k8s.setHeaderOptions("Content-Type", type),
  );
await patch({ spec: { replicas: 3 } }, k8s.PatchStrategy.MergePatch);
const scaled = await until(DEPLOYMENTS, only, (each) => each.status?.availableReplicas === 3);
report("merge patch", scaled.spec.replicas);
const identity = { apiVersion: "apps/v1", kind: "Deployment" };
const applied = { ...identity, metadata: { name, labels: { applied: "yes" } } };
const changed = await patch(applied, k8s.PatchStrategy.ServerSideApply);
report("server-side apply", changed.metadata.managedFields.some((each) => each.manager === "tests"));

const events = await core.listNamespacedEvent({ namespace, fieldSelector: `involvedObject.name=${name}` });
report("events", [...new Set(events.items.map((each) => each.reason))].sort());

const job = { metadata: { name: "report" }, spec: { template: template("Never") } };
await batch.createNamespacedJob({ namespace, body: job });
const done = await until("/apis/batch/v1/namespaces/default/jobs", {}, (each) => each.status?.succeeded);
report("job", done.status.succeeded);
await batch.deleteNamespacedJob({ namespace, name: "report", propagationPolicy: "Background" });

const properties = { spec: { type: "object", properties: { size: { type: "integer" } } } };
const schema = { openAPIV3Schema: { type: "object", properties } };
const names = { plural: "gadgets", singular: "gadget", kind: "Gadget", listKind: "GadgetList" };
const versions = [{ name: "v1", served: true, storage: true, schema }];
const definition = { metadata: { name: `gadgets.${group}` }, spec: { group, scope: "Namespaced", names, versions } };
await extensions.createCustomResourceDefinition({ body: definition });
const kind = { group, version: "v1", namespace, plural: "gadgets" };
const gadget = { apiVersion: `${group}/v1`, kind: "Gadget", metadata: { name: "g" }, spec: { size: 3 } };
await custom.createNamespacedCustomObject({ ...kind, body: gadget });
const listed = await custom.listNamespacedCustomObject(kind);
report("custom resource", listed.items.map((each) => each.spec.size));

await apps.deleteNamespacedDeployment({ namespace, name, propagationPolicy: "Foreground" });
await until(DEPLOYMENTS, only, (each, type) => type === "DELETED");
report("deleted", (await core.listNamespacedPod({ namespace, labelSelector: `app=${name}` })).items.length);
process.exit(0);
