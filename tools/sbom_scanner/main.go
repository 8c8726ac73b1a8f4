// An SBOM scanner for BuildKit: it writes the packages of a file system as an SPDX document in an in-toto statement.
// Protocol: https://github.com/moby/buildkit/blob/master/docs/attestations/sbom-protocol.md
//
// It stands in for docker/buildkit-syft-scanner where no image can be pulled: BuildKit uses that by default, and its module is on no proxy.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/anchore/syft/syft"
	"github.com/anchore/syft/syft/cataloging"
	"github.com/anchore/syft/syft/cataloging/pkgcataloging"
	"github.com/anchore/syft/syft/format/spdxjson"
)

type statement struct {
	Type          string          `json:"_type"`
	PredicateType string          `json:"predicateType"`
	Subject       []struct{}      `json:"subject"`
	Predicate     json.RawMessage `json:"predicate"`
}

func scan(ctx context.Context, source, destination string) error {
	opened, err := syft.GetSource(ctx, source, syft.DefaultGetSourceConfig().WithSources("dir"))
	if err != nil {
		return err
	}
	defer opened.Close()
	// What is installed in an image, not what manifests in it declare. The database of RPM needs SQLite, and Debian has none.
	catalogers := cataloging.NewSelectionRequest().WithDefaults(pkgcataloging.ImageTag).WithRemovals("rpm-db-cataloger")
	bill, err := syft.CreateSBOM(ctx, opened, syft.DefaultCreateSBOMConfig().WithCatalogerSelection(catalogers))
	if err != nil {
		return err
	}
	encoder, err := spdxjson.NewFormatEncoderWithConfig(spdxjson.DefaultEncoderConfig())
	if err != nil {
		return err
	}
	var predicate bytes.Buffer
	if err := encoder.Encode(&predicate, *bill); err != nil {
		return err
	}
	content, err := json.Marshal(statement{
		Type:          "https://in-toto.io/Statement/v0.1",
		PredicateType: "https://spdx.dev/Document",
		Subject:       []struct{}{},
		Predicate:     predicate.Bytes(),
	})
	if err != nil {
		return err
	}
	return os.WriteFile(destination, content, 0o644)
}

func main() {
	source, directory := os.Getenv("BUILDKIT_SCAN_SOURCE"), os.Getenv("BUILDKIT_SCAN_DESTINATION")
	if err := scan(context.Background(), source, filepath.Join(directory, filepath.Base(source)+".spdx.json")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
