{{/* Names, labels and images of all objects of the chart. */}}

{{- define "tetrapod.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/* The full name of the release, short enough for the names of pods and Secrets that begin with it. */}}
{{- define "tetrapod.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- $name := include "tetrapod.name" . -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The labels of selectors. They never change, because the selector of a Deployment is immutable. Argument: (dict "root" $ "component" "core"). */}}
{{- define "tetrapod.selectorLabels" -}}
app.kubernetes.io/name: {{ include "tetrapod.name" .root }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
{{- with .component }}
app.kubernetes.io/component: {{ . }}
{{- end }}
{{- end -}}

{{- define "tetrapod.labels" -}}
{{ include "tetrapod.selectorLabels" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/part-of: tetrapod
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- with .root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* `annotations:`, if there are any. Argument: (dict "root" $ "annotations" …). */}}
{{- define "tetrapod.annotations" -}}
{{- with merge (dict) (.annotations | default dict) .root.Values.commonAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* The reference of an image. A digest takes precedence over a tag. Argument: (dict "image" … "tag" DEFAULT). */}}
{{- define "tetrapod.image" -}}
{{- $repository := .image.repository -}}
{{- with .image.registry }}{{ $repository = printf "%s/%s" . $repository }}{{ end -}}
{{- if .image.digest -}}
{{- printf "%s@%s" $repository .image.digest -}}
{{- else -}}
{{- printf "%s:%s" $repository (.image.tag | default .tag) -}}
{{- end -}}
{{- end -}}

{{- define "tetrapod.pullSecrets" -}}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ if kindIs "string" . }}{{ . }}{{ else }}{{ .name }}{{ end }}
  {{- end }}
{{- end }}
{{- end -}}

{{- define "tetrapod.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (include "tetrapod.fullname" .) -}}
{{- else -}}
{{- .Values.serviceAccount.name | default "default" -}}
{{- end -}}
{{- end -}}

{{/* The values of one of the four services as YAML: `defaults`, overridden by its own block. Argument: (dict "root" $ "component" "core"). */}}
{{- define "tetrapod.component" -}}
{{- $merged := deepCopy .root.Values.defaults -}}
{{- $own := index .root.Values .component | default dict -}}
{{- range $key := list "extraArgs" "extraEnv" "extraEnvFrom" "extraVolumes" "extraVolumeMounts" "extraContainers" -}}
{{- if hasKey $own $key -}}
{{- $own = merge (dict $key (concat (index $merged $key | default list) (index $own $key | default list))) (omit $own $key) -}}
{{- end -}}
{{- end -}}
{{- include "tetrapod.overlay" (dict "into" $merged "from" $own) -}}
{{- toYaml $merged -}}
{{- end -}}

{{/* Merge the map `from` into the map `into`, also its values `false`, 0 and "", which mergeOverwrite ignores. */}}
{{- define "tetrapod.overlay" -}}
{{- range $key, $value := .from -}}
{{- if and (kindIs "map" $value) (kindIs "map" (index $.into $key)) -}}
{{- include "tetrapod.overlay" (dict "into" (index $.into $key) "from" $value) -}}
{{- else -}}
{{- $_ := set $.into $key $value -}}
{{- end -}}
{{- end -}}
{{- end -}}
