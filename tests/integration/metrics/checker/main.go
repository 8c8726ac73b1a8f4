// Checks a page of metrics with Prometheus' own parsers: checker text|protobuf < page. Every fault is a line on standard output.
package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"sort"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

func main() {
	page, err := io.ReadAll(os.Stdin)
	if err != nil {
		fault("reading: %v", err)
		return
	}
	families := parse(os.Args[1], page)
	fmt.Printf("families %d\n", len(families))
	for _, family := range families {
		check(family)
	}
}

func fault(format string, args ...any) { fmt.Printf("fault: "+format+"\n", args...) }

func parse(form string, page []byte) []*dto.MetricFamily {
	if form == "text" {
		checkGroups(page)
		parser := expfmt.NewTextParser(model.LegacyValidation)
		found, err := parser.TextToMetricFamilies(bytes.NewReader(page))
		if err != nil {
			fault("%v", err)
		}
		families := make([]*dto.MetricFamily, 0, len(found))
		for _, family := range found {
			families = append(families, family)
		}
		return families
	}
	decoder := expfmt.NewDecoder(bytes.NewReader(page), expfmt.NewFormat(expfmt.TypeProtoDelim))
	seen := map[string]bool{}
	var families []*dto.MetricFamily
	for {
		family := &dto.MetricFamily{}
		if err := decoder.Decode(family); err == io.EOF {
			return families
		} else if err != nil {
			fault("%v", err)
			return families
		}
		if seen[family.GetName()] {
			fault("second family %s", family.GetName())
		}
		seen[family.GetName()] = true
		families = append(families, family)
	}
}

// checkGroups finds samples that do not follow the TYPE line of their family.
func checkGroups(page []byte) {
	name := ""
	lines := bufio.NewScanner(bytes.NewReader(page))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		if strings.HasPrefix(line, "# TYPE ") {
			name = strings.Fields(line)[2]
		} else if line != "" && line[0] != '#' && !strings.HasPrefix(line, name) {
			fault("%q is below the family %s", line, name)
		}
	}
}

func check(family *dto.MetricFamily) {
	seen := map[string]bool{}
	for _, metric := range family.GetMetric() {
		labels := make([]string, 0, len(metric.GetLabel()))
		for _, label := range metric.GetLabel() {
			labels = append(labels, fmt.Sprintf("%s=%q", label.GetName(), label.GetValue()))
		}
		sort.Strings(labels)
		series := family.GetName() + "{" + strings.Join(labels, ",") + "}"
		if seen[series] {
			fault("second series %s", series)
		}
		seen[series] = true
		if histogram := metric.GetHistogram(); histogram != nil {
			checkHistogram(series, histogram)
		}
	}
}

func checkHistogram(series string, histogram *dto.Histogram) {
	last, bound := uint64(0), 0.0
	for index, bucket := range histogram.GetBucket() {
		if bucket.GetCumulativeCount() < last || (index > 0 && bucket.GetUpperBound() <= bound) {
			fault("%s: bucket %v has %d, after %d", series, bucket.GetUpperBound(), bucket.GetCumulativeCount(), last)
		}
		last, bound = bucket.GetCumulativeCount(), bucket.GetUpperBound()
	}
	if last > histogram.GetSampleCount() {
		fault("%s: %d samples, %d in buckets", series, histogram.GetSampleCount(), last)
	}
}
