//go:build template

package infra

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"lancekeeper/internal/metrics"
)

type alarm struct {
	AlarmDescription   string
	Namespace          string
	MetricName         string
	Dimensions         []struct{ Name string }
	Statistic          string
	Period             int
	EvaluationPeriods  any // a number, or a parameter
	DatapointsToAlarm  int
	Threshold          any
	ComparisonOperator string
	TreatMissingData   string
	AlarmActions       any
}

func alarms(t *testing.T) map[string]alarm {
	t.Helper()
	all := map[string]alarm{}
	for name, r := range read(t).Resources {
		if r.Type == "AWS::CloudWatch::Alarm" {
			all[name] = properties[alarm](t, r)
		}
	}
	return all
}

// CloudWatch takes an alarm on a metric that nobody writes, and no linter looks.
func TestAlarmsAreOnMetricsThatAreWritten(t *testing.T) {
	t.Parallel()
	written := map[string]metrics.Definition{}
	for _, d := range metrics.Definitions() {
		written[d.Name] = d
	}
	alarmed := map[string]bool{}
	for name, a := range alarms(t) {
		require.NotEmpty(t, a.AlarmDescription, name)
		require.NotNil(t, a.AlarmActions, name)
		require.Contains(t, []string{"breaching", "notBreaching"}, a.TreatMissingData, "%s: silence needs a decision", name)
		if a.Namespace == "AWS/Lambda" {
			require.Equal(t, "Errors", a.MetricName, name)
			require.Len(t, a.Dimensions, 1, name)
			require.Equal(t, "FunctionName", a.Dimensions[0].Name, name)
			continue
		}
		require.Equal(t, metrics.Namespace, a.Namespace, name)
		require.Contains(t, written, a.MetricName, name)
		require.Empty(t, a.Dimensions, "%s: the metric of all datasets together has no dimension", name)
		if written[a.MetricName].Gauge {
			require.Equal(t, "Maximum", a.Statistic, "%s: a gauge may be delivered twice, and the worst dataset counts", name)
		}
		alarmed[a.MetricName] = true
	}
	for _, d := range metrics.Definitions() {
		require.Equal(t, d.AlarmOn, alarmed[d.Name], "%s: definition and template differ on whether there is an alarm", d.Name)
	}
}

func TestSilenceRaisesAnAlarm(t *testing.T) {
	t.Parallel()
	var breaching []string
	for _, a := range alarms(t) {
		if a.TreatMissingData == "breaching" {
			breaching = append(breaching, a.MetricName)
		}
	}
	slices.Sort(breaching)
	require.Equal(t, []string{"MaintenanceFailures", "UnreclaimedVersions"}, breaching)
}

// A datapoint of Lambda carries the time at which the invocation began, so the window must reach further back than the longest
// invocation and the time between two.
func TestAlarmWindows(t *testing.T) {
	t.Parallel()
	const longestRun, interval, week = 900, 3600, 7 * 24 * 3600
	parameters := read(t).Parameters
	for name, a := range alarms(t) {
		periods, fixed := a.EvaluationPeriods.(float64)
		if !fixed {
			periods = parameters[ref(a.EvaluationPeriods)].Default.(float64)
		}
		window := a.Period * int(periods)
		require.GreaterOrEqual(t, window, longestRun+interval, name)
		require.LessOrEqual(t, window, week, "%s: CloudWatch looks back a week at most", name)
		require.LessOrEqual(t, a.DatapointsToAlarm, int(periods), name)
	}
}
