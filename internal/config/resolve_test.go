package config_test

import (
	"log/slog"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lancekeeper/internal/config"
)

// input is the least that resolves, as a command.
func input(change func(*config.Input)) config.Input {
	in := config.Input{Datasets: []string{"s3://bucket/t.lance"}}
	if change != nil {
		change(&in)
	}
	return in
}

func event(text string) config.Input {
	return input(func(in *config.Input) { in.Event = []byte(text) })
}

func environ(lines ...string) config.Input {
	return input(func(in *config.Input) { in.Environ = lines })
}

func flags(pairs ...string) config.Input {
	return input(func(in *config.Input) {
		in.Flags = map[string]string{}
		for pair := range slices.Chunk(pairs, 2) {
			in.Flags[pair[0]] = pair[1]
		}
	})
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	c, err := config.Resolve(input(nil))
	require.NoError(t, err)
	sources := c.Sources
	c.Sources = nil
	require.Equal(t, config.Config{
		Datasets: []string{"s3://bucket/t.lance"}, Grace: time.Hour, Keep: 1, UnverifiedAge: 168 * time.Hour, TargetRows: 1048576,
		IndexPolicy: "auto", Compact: true, Prune: true, MemoryBytes: 256 << 20, LogLevel: slog.LevelWarn, Checksums: "auto",
	}, c)
	require.Len(t, sources, 29)
	for key, source := range sources {
		if key != "datasets" {
			require.Equal(t, config.Default, source, key)
		}
	}
}

func TestFunctionGivesMemoryTimeAndLogLevel(t *testing.T) {
	t.Parallel()
	c, err := config.Resolve(config.Input{
		Function: true, FunctionMemoryMB: 512, FunctionTimeout: 15 * time.Minute,
		Environ: []string{"LANCEKEEPER_DATASETS=s3://bucket/t.lance", "LANCEKEEPER_TABLE=keeper"},
	})
	require.NoError(t, err)
	require.Equal(t, int64(512<<20), c.MemoryBytes)
	require.Equal(t, 15*time.Minute, c.Timeout)
	require.Equal(t, slog.LevelInfo, c.LogLevel)
	require.Equal(t, config.Function, c.Sources["memory"])
	require.Equal(t, config.Function, c.Sources["timeoutSeconds"])
	require.Equal(t, config.Environment, c.Sources["datasets"])
}

func TestEverySettingFromEverySource(t *testing.T) {
	t.Parallel()
	fromEnvironment, err := config.Resolve(config.Input{Environ: []string{
		"PATH=/bin", "LANCEKEEPER_CACHE=/tmp/x", "LANCEKEEPER_TEST_ANYTHING=1",
		"LANCEKEEPER_DATASETS=s3://b/one, s3://b/two\n\ns3://b/three,", "LANCEKEEPER_GRACE=1d12h", "LANCEKEEPER_KEEP=3",
		"LANCEKEEPER_UNVERIFIED_AGE=2d", "LANCEKEEPER_TARGET_ROWS=1000", "LANCEKEEPER_TARGET_BYTES=64MiB",
		"LANCEKEEPER_DELETIONS_OVER=0.1", "LANCEKEEPER_INDEX_POLICY=leave", "LANCEKEEPER_COMPACT=false", "LANCEKEEPER_PRUNE=true",
		"LANCEKEEPER_TABLE=keeper", "LANCEKEEPER_STATE=/state", "LANCEKEEPER_LOG_LEVEL=debug",
		"LANCEKEEPER_POLICIES=a: never; b*: keep=2", "LANCEKEEPER_BEFORE_VERSION=9", "LANCEKEEPER_PIN_VERSIONS=3,17", "LANCEKEEPER_HAS_CLONES=true", "LANCEKEEPER_ERROR_IF_TAGGED=true",
		"LANCEKEEPER_DELETES_PER_SECOND=500", "LANCEKEEPER_ENCRYPTION=aws:kms", "LANCEKEEPER_KMS_KEY=alias/mine", "LANCEKEEPER_REQUESTER_PAYS=true",
		"LANCEKEEPER_BUCKET_OWNER=123456789012", "LANCEKEEPER_CHECKSUMS=required",
	}})
	require.NoError(t, err)
	require.Equal(t, map[string]config.Resolved{
		"datasets":         {Value: "s3://b/one,s3://b/two,s3://b/three", Source: config.Environment},
		"grace":            {Value: "1d12h", Source: config.Environment},
		"allowShortGrace":  {Value: "false", Source: config.Default},
		"keep":             {Value: "3", Source: config.Environment},
		"unverifiedAge":    {Value: "2d", Source: config.Environment},
		"policies":         {Value: "a, b*", Source: config.Environment},
		"beforeVersion":    {Value: "9", Source: config.Environment},
		"pinVersions":      {Value: "3,17", Source: config.Environment},
		"hasClones":        {Value: "true", Source: config.Environment},
		"errorIfTagged":    {Value: "true", Source: config.Environment},
		"deletesPerSecond": {Value: "500", Source: config.Environment},
		"encryption":       {Value: "aws:kms", Source: config.Environment},
		"kmsKey":           {Value: "alias/mine", Source: config.Environment},
		"requesterPays":    {Value: "true", Source: config.Environment},
		"bucketOwner":      {Value: "123456789012", Source: config.Environment},
		"checksums":        {Value: "required", Source: config.Environment},
		"targetRows":       {Value: "1000", Source: config.Environment},
		"targetBytes":      {Value: "64MiB", Source: config.Environment},
		"deletionsOver":    {Value: "0.1", Source: config.Environment},
		"indexPolicy":      {Value: "leave", Source: config.Environment},
		"compact":          {Value: "false", Source: config.Environment},
		"prune":            {Value: "true", Source: config.Environment},
		"dryRun":           {Value: "false", Source: config.Default},
		"until":            {Value: "once", Source: config.Default},
		"timeoutSeconds":   {Value: "none", Source: config.Default},
		"memory":           {Value: "256MiB", Source: config.Default},
		"table":            {Value: "keeper", Source: config.Environment},
		"state":            {Value: "/state", Source: config.Environment},
		"logLevel":         {Value: "debug", Source: config.Environment},
	}, fromEnvironment.Effective())

	fromEvent, err := config.Resolve(config.Input{Event: []byte(`{"datasets":["s3://b/one","s3://b/two"],"grace":"5m",
		"allowShortGrace":true,"keep":2,"unverifiedAge":"3d","policies":"a: never","beforeVersion":8,"pinVersions":"4","hasClones":true,"errorIfTagged":true,"deletesPerSecond":7,"targetRows":2000,"targetBytes":1048576,"deletionsOver":1e-1,
		"indexPolicy":"defer","compact":true,"prune":"false","dryRun":true,"until":"drained","timeoutSeconds":90.5}`)})
	require.NoError(t, err)
	fromFlags, err := config.Resolve(config.Input{Datasets: []string{"s3://b/one", "s3://b/two"}, Flags: map[string]string{
		"grace": "5m", "allowShortGrace": "true", "keep": "2", "unverifiedAge": "3d", "targetRows": "2000",
		"policies": "a: never", "beforeVersion": "8", "pinVersions": "4", "hasClones": "true", "errorIfTagged": "true", "deletesPerSecond": "7",
		"targetBytes": "1MiB", "deletionsOver": "0.1", "indexPolicy": "defer", "compact": "true", "prune": "false", "dryRun": "true",
		"until": "drained", "timeoutSeconds": "1m30.5s",
	}})
	require.NoError(t, err)
	for key, source := range fromEvent.Sources {
		if source != config.Default {
			require.Equal(t, config.Event, source)
			require.Equal(t, config.Flag, fromFlags.Sources[key])
		}
	}
	require.Len(t, slices.DeleteFunc(slices.Collect(maps.Values(fromEvent.Sources)), func(s config.Source) bool { return s == config.Default }), 20)
	fromEvent.Sources, fromFlags.Sources = nil, nil
	require.Equal(t, fromFlags, fromEvent)
	require.Equal(t, 90500*time.Millisecond, fromEvent.Timeout)
}

func TestPrecedence(t *testing.T) {
	t.Parallel()
	in := config.Input{
		Environ:  []string{"LANCEKEEPER_KEEP=2", "LANCEKEEPER_GRACE=2h", "LANCEKEEPER_DATASETS=s3://bucket/a"},
		Event:    []byte(`{"keep":3,"grace":"3h","datasets":["s3://bucket/b"]}`),
		Flags:    map[string]string{"keep": "4"},
		Datasets: []string{"s3://bucket/c"},
	}
	c, err := config.Resolve(in)
	require.NoError(t, err)
	require.Equal(t, 4, c.Keep)
	require.Equal(t, config.Flag, c.Sources["keep"])
	require.Equal(t, 3*time.Hour, c.Grace)
	require.Equal(t, config.Event, c.Sources["grace"])
	require.Equal(t, []string{"s3://bucket/c"}, c.Datasets, "replaced, not merged")

	in.Event, in.Datasets = nil, nil
	c, err = config.Resolve(in)
	require.NoError(t, err)
	require.Equal(t, 2*time.Hour, c.Grace)
	require.Equal(t, []string{"s3://bucket/a"}, c.Datasets)

	c, err = config.Resolve(environ("LANCEKEEPER_KEEP=", "LANCEKEEPER_TABLE= "))
	require.NoError(t, err)
	require.Equal(t, config.Default, c.Sources["keep"], "a variable that is set to nothing is not set")
}

func TestPolicyIsWhatChangesADataset(t *testing.T) {
	t.Parallel()
	c, err := config.Resolve(flags("grace", "24h", "timeoutSeconds", "5m", "dryRun", "true"))
	require.NoError(t, err)
	policy := c.Policy()
	require.Equal(t, []string{
		"allowShortGrace", "beforeVersion", "compact", "deletesPerSecond", "deletionsOver", "errorIfTagged", "grace", "hasClones", "indexPolicy",
		"keep", "pinVersions", "prune", "targetBytes", "targetRows", "unverifiedAge",
	}, slices.Sorted(maps.Keys(policy)))
	require.Equal(t, config.Resolved{Value: "1d", Source: config.Flag}, policy["grace"])
	require.Equal(t, config.Resolved{Value: "7d", Source: config.Default}, policy["unverifiedAge"])
}

func TestEventShapes(t *testing.T) {
	t.Parallel()
	const envelope = `{"version":"0","id":"1","detail-type":"Scheduled Event","source":"aws.events","account":"123456789012",` +
		`"time":"2026-12-01T12:00:00Z","region":"eu-central-1","resources":["arn:aws:events:eu-central-1:1:rule/r"],"detail":`
	for name, c := range map[string]struct {
		event string
		keep  int
	}{
		"none":                     {"", 1},
		"white space":              {" \n", 1},
		"null":                     {"null", 1},
		"empty":                    {"{}", 1},
		"by hand":                  {`{"keep":7}`, 7},
		"numbers as texts":         {`{"keep":"7"}`, 7},
		"rule":                     {envelope + "{}}", 1},
		"rule with settings":       {envelope + `{"keep":7}}`, 7},
		"rule without detail":      {envelope + "null}", 1},
		"scheduler without input":  {envelope + `"{}"}`, 1},
		"scheduler, text settings": {envelope + `"{\"keep\":7}"}`, 7},
		"scheduler, empty text":    {envelope + `""}`, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := config.Resolve(event(c.event))
			require.NoError(t, err)
			require.Equal(t, c.keep, got.Keep)
		})
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	const shortGrace = "must be at least 1h: what is slower than that loses what it works on; to go below, run it by hand with " +
		"--allow-short-grace (event key allowShortGrace)"
	for name, c := range map[string]struct {
		in   config.Input
		want string
	}{
		"unknown variable":        {environ("LANCEKEEPER_GRCE=1h"), "environment: LANCEKEEPER_GRCE: unknown setting (did you mean LANCEKEEPER_GRACE?)"},
		"unknown, nothing near":   {environ("LANCEKEEPER_PASSWORD=x"), "environment: LANCEKEEPER_PASSWORD: unknown setting"},
		"unknown event key":       {event(`{"target_row":1}`), "event: target_row: unknown setting (did you mean targetRows?)"},
		"unknown key in a detail": {event(`{"detail-type":"x","source":"y","detail":{"bucket":{}}}`), "event: bucket: unknown setting"},
		"not from environment": {
			environ("LANCEKEEPER_ALLOW_SHORT_GRACE=true"),
			"environment: LANCEKEEPER_ALLOW_SHORT_GRACE: can't be set by the environment, only by the flag --allow-short-grace or the event key allowShortGrace",
		},
		"dry run not from environment": {
			environ("LANCEKEEPER_DRY_RUN="),
			"environment: LANCEKEEPER_DRY_RUN: can't be set by the environment, only by the flag --dry-run or the event key dryRun",
		},
		"until not from environment": {
			environ("LANCEKEEPER_UNTIL=drained"),
			"environment: LANCEKEEPER_UNTIL: can't be set by the environment, only by the flag --until or the event key until",
		},
		"memory not from environment": {
			environ("LANCEKEEPER_MEMORY=1GiB"), "environment: LANCEKEEPER_MEMORY: can't be set by the environment, only by the flag --memory",
		},
		"not from an event": {
			event(`{"table":"keeper"}`),
			"event: table: can't be set by an event, only by the flag --table or the variable LANCEKEEPER_TABLE",
		},
		"event is a list":           {event(`[1]`), `event: event "[1]": must be a JSON object of settings, or empty`},
		"event is no JSON":          {event(`keep=1`), `event: event "keep=1": must be a JSON object of settings, or empty`},
		"two events":                {event(`{} {}`), `event: event "{} {}": must be one JSON object: something follows it`},
		"detail is a list":          {event(`{"detail-type":"x","source":"y","detail":[]}`), `event: detail "[]": must be a JSON object of settings, or empty`},
		"event value is an object":  {event(`{"keep":{}}`), `event: keep "{}": must be a text, a number, true or false`},
		"event value is null":       {event(`{"keep":null}`), `event: keep "null": must be a text, a number, true or false`},
		"datasets are one text":     {event(`{"datasets":"s3://b/t"}`), `event: datasets "\"s3://b/t\"": must be an array of texts`},
		"datasets are numbers":      {event(`{"datasets":[1]}`), `event: datasets "[1]": must be an array of texts`},
		"short grace, environment":  {environ("LANCEKEEPER_GRACE=59m"), `environment: LANCEKEEPER_GRACE "59m": ` + shortGrace},
		"short grace, event":        {event(`{"grace":"0"}`), `event: grace "0": ` + shortGrace},
		"short grace, flag":         {flags("grace", "1m"), `flag: --grace "1m": ` + shortGrace},
		"short age of unverified":   {flags("unverifiedAge", "1m"), `flag: --unverified-age "1m": ` + shortGrace},
		"negative grace":            {flags("grace", "-1h", "allowShortGrace", "true"), `flag: --grace "-1h": must be from 0s to 3650d`},
		"grace without unit":        {flags("grace", "3600"), `flag: --grace "3600": must be a duration such as 90s, 1h30m, 7d or 1d12h`},
		"keep nothing":              {environ("LANCEKEEPER_KEEP=0"), `environment: LANCEKEEPER_KEEP "0": must be a whole number from 1 to 1000000000`},
		"keep a half":               {event(`{"keep":1.5}`), `event: keep "1.5": must be a whole number from 1 to 1000000000`},
		"negative rows":             {flags("targetRows", "-1"), `flag: --target-rows "-1": must be a whole number from 1 to 4294967295`},
		"negative bytes":            {flags("targetBytes", "-1MiB"), `flag: --target-bytes "-1MiB": must be from 0 to 1024GiB`},
		"bytes in another unit":     {flags("targetBytes", "1MB"), `flag: --target-bytes "1MB": must be a size such as 64MiB, 1GiB or a number of bytes`},
		"not a number":              {flags("deletionsOver", "NaN"), `flag: --deletions-over "NaN": must be a share from 0 to 1`},
		"infinite":                  {flags("deletionsOver", "+Inf"), `flag: --deletions-over "+Inf": must be a share from 0 to 1`},
		"percent":                   {flags("deletionsOver", "10"), `flag: --deletions-over "10": must be a share from 0 to 1`},
		"index policy":              {flags("indexPolicy", "remaps"), `flag: --index-policy "remaps": must be one of auto, leave, uncover, remap, defer (did you mean remap?)`},
		"no truth":                  {environ("LANCEKEEPER_PRUNE=yes"), `environment: LANCEKEEPER_PRUNE "yes": must be true or false`},
		"until":                     {event(`{"until":"drain"}`), `event: until "drain": must be one of once, drained`},
		"no time":                   {event(`{"timeoutSeconds":0}`), `event: timeoutSeconds "0": must be above 0 and at most 7d (604800 seconds)`},
		"negative time":             {flags("timeoutSeconds", "-5m"), `flag: --timeout "-5m": must be above 0 and at most 7d (604800 seconds)`},
		"time not a number":         {flags("timeoutSeconds", "NaN"), `flag: --timeout "NaN": must be above 0 and at most 7d (604800 seconds)`},
		"little memory":             {flags("memory", "1MiB"), `flag: --memory "1MiB": must be from 32MiB to 1024GiB`},
		"table name":                {environ("LANCEKEEPER_TABLE=a b"), `environment: LANCEKEEPER_TABLE "a b": must be the name or the ARN of a DynamoDB table`},
		"log level":                 {environ("LANCEKEEPER_LOG_LEVEL=warning"), `environment: LANCEKEEPER_LOG_LEVEL "warning": must be one of debug, info, warn, error`},
		"another store":             {environ("LANCEKEEPER_DATASETS=gs://b/t"), `environment: LANCEKEEPER_DATASETS "gs://b/t": gs://b/t: gs:// is not supported: supported are s3://bucket/path, s3+ddb://bucket/path?ddbTableName=TABLE and local paths`},
		"nothing to do":             {config.Input{Datasets: []string{"x"}, Environ: []string{"LANCEKEEPER_PRUNE=false"}, Flags: map[string]string{"compact": "false"}}, `environment: LANCEKEEPER_PRUNE "false": nothing is left to do: compact and prune are both off`},
		"no dataset":                {config.Input{}, "default: URI: must name at least one dataset, or a folder of datasets"},
		"no dataset of an event":    {event(`{"datasets":[]}`), ""},
		"no dataset of a function":  {config.Input{Function: true, Environ: []string{"LANCEKEEPER_TABLE=keeper"}}, "default: LANCEKEEPER_DATASETS: must name at least one dataset, or a folder of datasets"},
		"a function without ledger": {input(func(in *config.Input) { in.Function = true }), "default: LANCEKEEPER_TABLE: must name the DynamoDB table of lock and ledger: a function keeps nothing itself (LANCEKEEPER_STATE: a folder on a file system that outlives it)"},
		"unknown setting in a flag": {flags("grce", "1h"), "flag: grce: unknown setting"},
		"wrong although replaced":   {config.Input{Environ: []string{"LANCEKEEPER_KEEP=x"}, Flags: map[string]string{"keep": "1"}}, `environment: LANCEKEEPER_KEEP "x": must be a whole number from 1 to 1000000000`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.want == "" {
				c.in.Datasets = nil
				c.want = "event: URI: must name at least one dataset, or a folder of datasets"
			}
			_, err := config.Resolve(c.in)
			require.EqualError(t, err, c.want)
			var setting *config.Error
			require.ErrorAs(t, err, &setting)
		})
	}
}

func TestShortGraceByHand(t *testing.T) {
	t.Parallel()
	in := environ("LANCEKEEPER_GRACE=5m")
	in.Event = []byte(`{"allowShortGrace":true}`)
	c, err := config.Resolve(in)
	require.NoError(t, err)
	require.Equal(t, 5*time.Minute, c.Grace)
}

func TestLongValuesAreCutInErrors(t *testing.T) {
	t.Parallel()
	long := make([]byte, 10_000)
	for i := range long {
		long[i] = 'x'
	}
	_, err := config.Resolve(event(string(long)))
	require.Error(t, err)
	require.Less(t, len(err.Error()), 200)
}

func TestStateFolder(t *testing.T) {
	t.Parallel()
	got, err := config.StateFolder([]string{"HOME=/home/u", "XDG_STATE_HOME=/s"})
	require.NoError(t, err)
	require.Equal(t, "/s/lancekeeper", got)
	got, err = config.StateFolder([]string{"HOME=/home/u", "XDG_STATE_HOME=relative"})
	require.NoError(t, err)
	require.Equal(t, "/home/u/.local/state/lancekeeper", got)
	_, err = config.StateFolder(nil)
	var setting *config.Error
	require.ErrorAs(t, err, &setting)
}

func FuzzEvent(f *testing.F) {
	for _, seed := range []string{"", "{}", `{"keep":1}`, `{"detail-type":"x","source":"y","detail":"{}"}`, `{"datasets":["a"],"timeoutSeconds":1e300}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := config.Resolve(config.Input{Event: data, Datasets: []string{"s3://bucket/t"}})
		if err != nil {
			var setting *config.Error
			require.ErrorAs(t, err, &setting)
			return
		}
		require.GreaterOrEqual(t, c.Keep, 1)
		require.True(t, c.AllowShortGrace || c.Grace >= time.Hour)
		require.True(t, c.DeletionsOver >= 0 && c.DeletionsOver <= 1)
		require.GreaterOrEqual(t, c.Timeout, time.Duration(0))
	})
}
