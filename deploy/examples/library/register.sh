#!/bin/sh
# Register the library with the cluster of kubectl's current context.
#   register.sh credentials DIR   creates namespace, Service and RBAC, and writes the library's token and the cluster's CA to DIR
#   register.sh apiservice FILE   creates the APIService, with the CA of FILE (the library's pki/ca.crt) as caBundle
set -eu
here=$(cd "$(dirname "$0")" && pwd)
case "${1:-}" in
credentials)
    directory=${2:-$here/credentials}
    kubectl apply -f "$here/manifests/10-library.yaml" -f "$here/manifests/20-rbac.yaml"
    mkdir -p "$directory"
    kubectl config view --raw --minify -o 'jsonpath={.clusters[0].cluster.certificate-authority-data}' | base64 -d > "$directory/ca.crt"
    kubectl create token library --namespace library --duration 8760h > "$directory/token"
    # The directory is mounted into the container, whose user is another one.
    chmod 0755 "$directory" && chmod 0644 "$directory/ca.crt" "$directory/token"
    ;;
apiservice)
    bundle=$(base64 < "$2" | tr -d '\n')
    sed "s|CA_BUNDLE|$bundle|" "$here/manifests/30-apiservice.yaml" | kubectl apply -f -
    kubectl wait --for=condition=Available apiservice/v1.library.example.com --timeout=60s
    ;;
*)
    sed -n '2,4s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac
