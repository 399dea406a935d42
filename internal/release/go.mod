module github.com/miplc/miplc/release

go 1.26.0

require (
	github.com/CycloneDX/cyclonedx-go v0.10.0
	golang.org/x/mod v0.35.0
)
