package metrics_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"lancekeeper/internal/metrics"
)

var noon = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC) //nolint:gochecknoglobals // a constant that Go can't write

func full() metrics.Sample {
	return metrics.Sample{
		UnreclaimedVersions: new(uint64(0)), SecondsSinceSuccess: new(12.5), ConsecutiveFailures: new(0), FragmentsBefore: new(200),
		FragmentsAfter: new(1), ManifestsOnStorage: new(int64(1)), DatasetVersion: new(uint64(10000)),
		Pass: &metrics.Pass{
			Duration: 812 * time.Millisecond, VersionsRemoved: 9999, FilesRemoved: 24996, BytesReclaimed: 187221577, BytesWritten: 20480,
		},
	}
}

func write(t *testing.T, s metrics.Sample) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, metrics.Write(&b, noon, "s3://bucket/t.lance", s))
	return b.String()
}

func TestLine(t *testing.T) {
	t.Parallel()
	require.Equal(t, `{"_aws":{"Timestamp":1796126400000,"CloudWatchMetrics":[{"Namespace":"Lancekeeper","Dimensions":[["Dataset"],[]],"Metrics":[`+
		`{"Name":"UnreclaimedVersions","Unit":"Count"},{"Name":"SecondsSinceSuccess","Unit":"Seconds"},`+
		`{"Name":"MaintenanceFailures","Unit":"Count"},{"Name":"ConsecutiveFailures","Unit":"Count"},`+
		`{"Name":"MaintenanceDuration","Unit":"Milliseconds"},{"Name":"VersionsRemoved","Unit":"Count"},`+
		`{"Name":"FilesRemoved","Unit":"Count"},{"Name":"FragmentsBefore","Unit":"Count"},{"Name":"FragmentsAfter","Unit":"Count"},`+
		`{"Name":"RowsDropped","Unit":"Count"},{"Name":"BytesReclaimed","Unit":"Bytes"},{"Name":"BytesWritten","Unit":"Bytes"},`+
		`{"Name":"ManifestsOnStorage","Unit":"Count"},{"Name":"DatasetVersion","Unit":"None"},{"Name":"LockContended","Unit":"Count"},`+
		`{"Name":"CommitConflicts","Unit":"Count"},{"Name":"SkippedFragments","Unit":"Count"},{"Name":"Unsupported","Unit":"Count"}]}]},`+
		`"Dataset":"s3://bucket/t.lance","UnreclaimedVersions":0,"SecondsSinceSuccess":12.5,"MaintenanceFailures":0,"ConsecutiveFailures":0,`+
		`"MaintenanceDuration":812,"VersionsRemoved":9999,"FilesRemoved":24996,"FragmentsBefore":200,"FragmentsAfter":1,"RowsDropped":0,`+
		`"BytesReclaimed":187221577,"BytesWritten":20480,"ManifestsOnStorage":1,"DatasetVersion":10000,"LockContended":0,`+
		`"CommitConflicts":0,"SkippedFragments":0,"Unsupported":0}`+"\n", write(t, full()))
}

// document is a line, decoded: the values, and the names that are declared.
func document(t require.TestingT, line string) (values map[string]any, declared []string) {
	require.NoError(t, json.Unmarshal([]byte(line), &values))
	var head struct {
		AWS struct {
			CloudWatchMetrics []struct{ Metrics []struct{ Name, Unit string } }
		} `json:"_aws"`
	}
	require.NoError(t, json.Unmarshal([]byte(line), &head))
	for _, m := range head.AWS.CloudWatchMetrics[0].Metrics {
		declared = append(declared, m.Name)
	}
	return values, declared
}

func TestWhatWasNotMeasuredIsLeftOut(t *testing.T) {
	t.Parallel()
	values, declared := document(t, write(t, metrics.Sample{Pass: &metrics.Pass{Failed: true}}))
	require.InDelta(t, 1, values["MaintenanceFailures"], 0)
	for _, d := range metrics.Definitions() {
		if d.Gauge {
			require.NotContains(t, values, d.Name)
			require.NotContains(t, declared, d.Name)
		} else {
			require.Contains(t, values, d.Name, "counters are there, 0 or not")
			require.Contains(t, declared, d.Name)
		}
	}
}

// I6: a held lock is neither success nor failure.
func TestHeldLock(t *testing.T) {
	t.Parallel()
	values, declared := document(t, write(t, metrics.Sample{Pass: &metrics.Pass{Skipped: true}}))
	require.InDelta(t, 1, values["LockContended"], 0)
	require.NotContains(t, values, "MaintenanceFailures")
	require.NotContains(t, declared, "MaintenanceFailures")
}

func TestReportHasGaugesOnly(t *testing.T) {
	t.Parallel()
	_, declared := document(t, write(t, metrics.Sample{UnreclaimedVersions: new(uint64(7)), SecondsSinceSuccess: new(0.0)}))
	require.Equal(t, []string{"UnreclaimedVersions", "SecondsSinceSuccess"}, declared)
	require.Empty(t, write(t, metrics.Sample{}), "nothing known, nothing said")
}

func TestNoNumberIsLeftOut(t *testing.T) {
	t.Parallel()
	for _, odd := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64} {
		require.Empty(t, write(t, metrics.Sample{SecondsSinceSuccess: &odd}))
	}
}

func TestDimensionValues(t *testing.T) {
	t.Parallel()
	require.Equal(t, "s3://bucket/t.lance", metrics.DimensionValue("s3://bucket/t.lance"))
	require.Equal(t, "/d/%C3%A4 b%0A.lance", metrics.DimensionValue("/d/ä b\n.lance"))
	require.Equal(t, "-", metrics.DimensionValue(" "))
	long := metrics.DimensionValue(strings.Repeat("x", 2000) + "/t.lance")
	require.Len(t, long, 1024)
	require.True(t, strings.HasSuffix(long, "/t.lance"))
}

// Whatever the dataset is called and whatever was counted, a line is one JSON object whose metrics all have a value.
func TestEveryLineIsOneDocument(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := full()
		s.SecondsSinceSuccess = new(rapid.Float64().Draw(t, "age"))
		s.Pass.BytesReclaimed = rapid.Int64().Draw(t, "bytes")
		var b bytes.Buffer
		require.NoError(t, metrics.Write(&b, noon, rapid.String().Draw(t, "dataset"), s))
		require.Equal(t, 1, strings.Count(b.String(), "\n"))
		values, declared := document(t, b.String())
		for _, name := range declared {
			require.Contains(t, values, name)
		}
		require.Len(t, values, len(declared)+2)
		require.NotEmpty(t, values["Dataset"])
	})
}

func TestDefinitions(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, d := range metrics.Definitions() {
		require.False(t, seen[d.Name])
		seen[d.Name] = true
		require.NotEmpty(t, d.Description, d.Name)
		require.NotEmpty(t, d.Unit, d.Name)
	}
	require.Len(t, seen, 18)
}

type failing struct{ calls int }

var errFull = errors.New("no space")

func (f *failing) Write(p []byte) (int, error) {
	f.calls++
	if f.calls == 1 {
		return 0, errFull
	}
	return len(p), nil
}

func TestWriteAllGoesOn(t *testing.T) {
	t.Parallel()
	w := &failing{}
	err := metrics.WriteAll(w, noon, []metrics.Document{{"a", full()}, {"b", full()}})
	require.ErrorIs(t, err, errFull)
	require.ErrorContains(t, err, "write the metrics of a")
	require.Equal(t, 2, w.calls, "one call a line")

	var b bytes.Buffer
	require.NoError(t, metrics.WriteAll(&b, noon, []metrics.Document{{"a", full()}, {"b", full()}}))
	require.Equal(t, 2, strings.Count(b.String(), "\n"))
}
