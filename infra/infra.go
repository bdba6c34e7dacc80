// Package infra checks template.yaml and the events beside it; all of it is tests, behind the build tag template.
package infra
