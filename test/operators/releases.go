package operators

// modules has the operators of the samples, by path and version of their Go module. `go mod download -json
// path@version` prints the checksum of another version.
var modules = []module{
	{"github.com/apecloud/kubeblocks@v1.0.0", "h1:ditcH7RNZyDiWiHP1V7IuXWHdcBJv3/X5N89Qlz+xew=", []string{
		"config/crd/bases/apps.kubeblocks.io_clusters.yaml",
	}},
	{"github.com/argoproj/argo-cd/v2@v2.14.21", "h1:Ux50vfMUITW+Y+6GAYgQlZbr6WHE5ogiLg9OxxvP9EA=", []string{
		"manifests/crds/application-crd.yaml",
		"manifests/crds/applicationset-crd.yaml",
	}},
	{"github.com/argoproj/argo-rollouts@v1.8.3", "h1:blbtQva4IK9r6gFh+dWkCrLnFdPOWiv9ubQYu36qeaA=", []string{
		"manifests/crds/rollout-crd.yaml",
	}},
	{"github.com/cert-manager/cert-manager@v1.18.2", "h1:H2P75ycGcTMauV3gvpkDqLdS3RSXonWF2S49QGA1PZE=", []string{
		"deploy/crds/crd-certificaterequests.yaml",
		"deploy/crds/crd-certificates.yaml",
		"deploy/crds/crd-clusterissuers.yaml",
		"deploy/crds/crd-issuers.yaml",
	}},
	{"github.com/cloudnative-pg/cloudnative-pg@v1.26.0", "h1:X+ayWg6TXqglziSPejKiviPTf/CSh4AmYXx1mrS3i8s=", []string{
		"config/crd/bases/postgresql.cnpg.io_clusters.yaml",
		"config/crd/bases/postgresql.cnpg.io_poolers.yaml",
	}},
	{"github.com/crossplane/crossplane@v1.20.0", "h1:Wr3+/CilaMbRQ7u4e+m4XBmoARahBpENIYClGzIXpS8=", []string{
		"cluster/crds/pkg.crossplane.io_providers.yaml",
	}},
	{"github.com/elastic/cloud-on-k8s/v2@v2.16.0", "h1:HdXrUx6sy1/2SS7xcRt8Ij6wzyjUV9oirxDMP9m8g88=", []string{
		"config/crds/v1/resources/elasticsearch.k8s.elastic.co_elasticsearches.yaml",
	}},
	{"github.com/external-secrets/external-secrets@v0.17.0", "h1:ZV+T915JKdPHfmOuBO438Fa+0uFY5rPBbFYw9KlUMNM=", []string{
		"config/crds/bases/external-secrets.io_externalsecrets.yaml",
		"config/crds/bases/external-secrets.io_secretstores.yaml",
	}},
	{"github.com/fluxcd/flagger@v1.36.1", "h1:X2PumtNwZz9YSGaOtZLFm2zAKLgHhFkbNv8beg7ifyc=", []string{
		"artifacts/flagger/crd.yaml",
	}},
	{"github.com/fluxcd/helm-controller@v1.4.0", "h1:rkm8rmB6Na7eNc4pJOnvtXEaJ19iKluRtayHKjBxcUM=", []string{
		"config/crd/bases/helm.toolkit.fluxcd.io_helmreleases.yaml",
	}},
	{"github.com/fluxcd/kustomize-controller@v1.6.0", "h1:13S+wqCQ44njSg59DNgm1qMqVkK6+0eoZs+jv4+EWCs=", []string{
		"config/crd/bases/kustomize.toolkit.fluxcd.io_kustomizations.yaml",
	}},
	{"github.com/fluxcd/source-controller@v1.8.5", "h1:3zKSTGc2FPoZcQ5BjnyOrwdHDWeYqst3uAoZ+c0DG3c=", []string{
		"config/crd/bases/source.toolkit.fluxcd.io_gitrepositories.yaml",
	}},
	{"github.com/grafana/grafana-operator/v5@v5.18.0", "h1:ei7N2VfjsRjY8iprenH1IDV783WeV7CP5VNp//sB4hI=", []string{
		"config/crd/bases/grafana.integreatly.org_grafanas.yaml",
	}},
	{"github.com/hashicorp/vault-secrets-operator@v0.10.0", "h1:BjOTBJRqx1SLo7NeyqNJWRPDyfRscbqPtGU1U2LzArg=", []string{
		"config/crd/bases/secrets.hashicorp.com_vaultstaticsecrets.yaml",
	}},
	{"github.com/kedacore/keda/v2@v2.17.1", "h1:UomWibe5aO7COMUyF+jVM9fuENf4/wcSpiui65tF+d0=", []string{
		"config/crd/bases/keda.sh_scaledobjects.yaml",
	}},
	{"github.com/kubeflow/training-operator@v1.8.1", "h1:mVvoBSCInbMBX0gGSn4+Ihj3ycwoLO1iEAw+0qPhQfc=", []string{
		"manifests/base/crds/kubeflow.org_pytorchjobs.yaml",
	}},
	{"github.com/kubernetes-sigs/kro@v0.9.4", "h1:gynhldCLYW5x+M0c2Bf1ihoQTpNE68SKiXl1f6aX1kk=", []string{
		"helm/crds/kro.run_resourcegraphdefinitions.yaml",
	}},
	{"github.com/kyverno/kyverno@v1.13.4", "h1:2zUi+eszlisLdCir+WIf2NtuUfFPvJtjUNpewdtLjVw=", []string{
		"config/crds/kyverno/kyverno.io_clusterpolicies.yaml",
	}},
	{"github.com/mariadb-operator/mariadb-operator@v0.38.1", "h1:UQF7cNxMTSCmxuHIhhnMGsnc5e7S9iT7w7h8zmSUu1o=", []string{
		"config/crd/bases/k8s.mariadb.com_mariadbs.yaml",
	}},
	{"github.com/mongodb/mongodb-kubernetes-operator@v0.9.0", "h1:1SBmpQznWVbUgzi+ScNCNv6z5pLBwsSe4DUDKxHzFwc=", []string{
		"config/crd/bases/mongodbcommunity.mongodb.com_mongodbcommunity.yaml",
	}},
	{"github.com/open-telemetry/opentelemetry-operator@v0.135.0", "h1:YS2WL6r3emKRDRwZ63ZK8QSpJthYC/nUCIIzNyslZZE=", []string{
		"config/crd/bases/opentelemetry.io_opentelemetrycollectors.yaml",
	}},
	{"github.com/projectcontour/contour@v1.33.8", "h1:QoOfwqWws+CVRFpsRC2+f1DmB5IdurtyUtepIsiWfE0=", []string{
		"examples/contour/01-crds.yaml",
	}},
	{"github.com/prometheus-operator/prometheus-operator@v0.88.0", "h1:3T/dCQdk7CUVRqVfwRHoC5g66fC/ML6XQQLtQVL6Q5o=", []string{
		"example/prometheus-operator-crd/monitoring.coreos.com_prometheuses.yaml",
		"example/prometheus-operator-crd/monitoring.coreos.com_alertmanagers.yaml",
		"example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml",
	}},
	{"github.com/rabbitmq/cluster-operator/v2@v2.16.0", "h1:oYJm+1tXIatGHtiUWyN9hGdO+0eWsXA/j1b81wh0IqI=", []string{
		"config/crd/bases/rabbitmq.com_rabbitmqclusters.yaml",
	}},
	{"github.com/ray-project/kuberay/ray-operator@v1.5.0", "h1:KCjCQ7PSsvs9Ke+90CZbbs498nuaIJ/JkXk4vd54EVg=", []string{
		"config/crd/bases/ray.io_rayclusters.yaml",
		"config/crd/bases/ray.io_rayjobs.yaml",
		"config/crd/bases/ray.io_rayservices.yaml",
	}},
	{"github.com/tektoncd/pipeline@v1.0.0", "h1:qq/BtjwtvZV7qhd6BnL5sGoBM4vVqpCtz/+hMbs6p94=", []string{
		"config/300-crds/300-pipelinerun.yaml",
	}},
	{"github.com/vmware-tanzu/velero@v1.16.0", "h1:HjwyoLH4EPd/Vqr1ocP3hFGwqmnEW/gWJEeUrZeBIso=", []string{
		"config/crd/v1/bases/velero.io_backups.yaml",
		"config/crd/v1/bases/velero.io_backupstoragelocations.yaml",
	}},
	{"github.com/zalando/postgres-operator@v1.14.0", "h1:C8+n26C8v6fPB1SNW+Y8X6oQoEHufzGJXJzYPlix+zw=", []string{
		"manifests/postgresql.crd.yaml",
	}},
	{"go.universe.tf/metallb@v0.15.2", "h1:r7KDgJtk3KZe3qb36zRVrVCYHxLR03nPGT+qFXOomJM=", []string{
		"config/crd/bases/metallb.io_ipaddresspools.yaml",
	}},
	{"istio.io/api@v1.26.0", "h1:hYWzFonwfimFkzp3P4iKJ0bCyenIoYvEIOXrLi74tjg=", []string{
		"kubernetes/customresourcedefinitions.gen.yaml",
	}},
	{"knative.dev/serving@v0.45.0", "h1:+eOEwSE5+NmhQUUfARHGdSI1gwavddiPMKjl4+sHCjE=", []string{
		"config/core/300-resources/service.yaml",
	}},
	{"sigs.k8s.io/cluster-api@v1.10.2", "h1:xfvtNu4Fy/41grL0ryH5xSKQjpJEWdO8HiV2lPCCozQ=", []string{
		"config/crd/bases/cluster.x-k8s.io_clusters.yaml",
		"config/crd/bases/cluster.x-k8s.io_machinedeployments.yaml",
	}},
	{"sigs.k8s.io/cluster-inventory-api@v0.1.2", "h1:rH8Xh6NW5u0WXarjDJeYLSrCLQkwJnSUnyb74eyAXFY=", []string{
		"config/crd/bases/multicluster.x-k8s.io_clusterprofiles.yaml",
		"config/crd/bases/multicluster.x-k8s.io_placementdecisions.yaml",
	}},
	{"sigs.k8s.io/gateway-api@v1.3.0", "h1:q6okN+/UKDATola4JY7zXzx40WO4VISk7i9DIfOvr9M=", []string{
		"config/crd/standard/gateway.networking.k8s.io_gateways.yaml",
		"config/crd/standard/gateway.networking.k8s.io_httproutes.yaml",
	}},
	{"sigs.k8s.io/jobset@v0.8.1", "h1:FwosQQyjmYgOKy8sD3ERpfil1BDLNpYUOJdIqmZSz3s=", []string{
		"config/components/crd/bases/jobset.x-k8s.io_jobsets.yaml",
	}},
	{"sigs.k8s.io/karpenter@v1.5.0", "h1:3HaFtFvkteUJ+SjIViR1ImR0qR+GTqDulahauIuE4Qg=", []string{
		"pkg/apis/crds/karpenter.sh_nodeclaims.yaml",
		"pkg/apis/crds/karpenter.sh_nodepools.yaml",
	}},
	{"sigs.k8s.io/kueue@v0.17.0", "h1:7hzb38M4eKGzYW+CFv2s1L+swzzacUCHOCXxZmAV90I=", []string{
		"config/components/crd/bases/kueue.x-k8s.io_clusterqueues.yaml",
		"config/components/crd/bases/kueue.x-k8s.io_workloads.yaml",
	}},
	{"sigs.k8s.io/lws@v0.6.1", "h1:cWiRmMSflo8hQPBrmIIZtoaX3XuVkmAgFKkmjxlPULI=", []string{
		"config/crd/bases/leaderworkerset.x-k8s.io_leaderworkersets.yaml",
	}},
}
