//go:build emulator

package emulator

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lancekeeper/internal/lance/lancetest"
	"lancekeeper/internal/maintain"
)

// silent is an endpoint that takes connections and never answers.
func silent(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return "http://" + l.Addr().String()
}

// gate is a way to the S3 server on which some requests are never answered.
type gate struct {
	url   string
	hangs func(r *http.Request) bool
	hung  atomic.Int64
	clear chan struct{} // closed: everything goes through, and what still waits is to be asked again
}

func newGate(t *testing.T, hangs func(r *http.Request) bool) *gate {
	t.Helper()
	upstream, err := url.Parse(need(t, "AWS_ENDPOINT_URL_S3"))
	require.NoError(t, err)
	g, ended := &gate{hangs: hangs, clear: make(chan struct{})}, make(chan struct{})
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(upstream)
		r.Out.Host = r.In.Host // it is signed
	}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !g.isClear() && g.hangs(r) {
			g.hung.Add(1)
			_, _ = io.Copy(io.Discard, r.Body) // so that the server notices when the client goes
			select {
			case <-r.Context().Done():
			case <-ended:
			case <-g.clear:
				w.WriteHeader(http.StatusServiceUnavailable)
			}
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		close(ended)
		server.CloseClientConnections()
		server.Close()
	})
	g.url = server.URL
	return g
}

// about says whether a request names the dataset: in its path, its query, or, for a batch of deletes, its body.
func about(r *http.Request, uri string) bool {
	folder := strings.Split(uri, "/")[4] // s3://bucket/emulator/<folder>/<name>.lance
	if strings.Contains(r.URL.Path+r.URL.RawQuery, folder) {
		return true
	}
	if r.Method != http.MethodPost {
		return false
	}
	body, err := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	return err == nil && strings.Contains(string(body), folder)
}

func isWrite(r *http.Request) bool { return r.Method == http.MethodPut }

// open lets everything through from now on.
func (g *gate) open() { close(g.clear) }

func (g *gate) isClear() bool {
	select {
	case <-g.clear:
		return true
	default:
		return false
	}
}

// within invokes a function and demands that it ends by itself, before Lambda would kill it.
func (f *function) within(timeout int, event string) []byte {
	f.t.Helper()
	began := time.Now()
	body := f.invoke(event)
	require.NotContains(f.t, string(body), "Task timed out", "the function must end before it is killed")
	require.Less(f.t, time.Since(began), time.Duration(timeout)*time.Second)
	require.Equal(f.t, 1, f.processes())
	return body
}

// eventually invokes the maintain function until the leases that were left to expire have expired.
func (f *function) eventually(want maintain.Outcome) {
	f.t.Helper()
	var doc maintain.Document
	require.Eventually(f.t, func() bool {
		doc = f.document(event(f.t, "scheduled"))
		return doc.Outcome != maintain.Skipped
	}, time.Minute, time.Second)
	require.Equal(f.t, want, doc.Outcome, "%+v", doc.Results)
}

// TestSilentStore: a function without a way to S3. It stops by itself, and leaves metrics and a record of its failure that say so.
func TestSilentStore(t *testing.T) {
	t.Parallel()
	table, book := newTable(t)
	const uri, timeout = "s3://a-bucket/db/t.lance", 8
	f := start(t, "maintain", timeout, "LANCEKEEPER_DATASETS="+uri, "LANCEKEEPER_TABLE="+table, "AWS_ENDPOINT_URL_S3="+silent(t))
	for failures := 1; failures <= 2; failures++ {
		body := f.within(timeout, event(t, "scheduled"))
		require.Contains(t, string(body), "did not answer within")
		require.Contains(t, string(body), "an endpoint for S3")
		m := f.metrics()[uri]
		require.EqualValues(t, 1, m["MaintenanceFailures"])
		require.EqualValues(t, failures, m["ConsecutiveFailures"])
		require.NotContains(t, m, "UnreclaimedVersions", "nothing was ever measured")
		e, found, err := book.Load(t.Context(), uri)
		require.NoError(t, err)
		require.True(t, found)
		require.Nil(t, e.Started, "the pass is recorded as ended")
		require.Equal(t, failures, e.Failures)
	}
}

// TestSilentTable: a function without a way to DynamoDB.
func TestSilentTable(t *testing.T) {
	t.Parallel()
	_, one := upload(t, "emptied")
	_, two := upload(t, "updates")
	const timeout = 30
	f := start(t, "maintain", timeout, "LANCEKEEPER_DATASETS="+one+","+two, "LANCEKEEPER_TABLE=a-table", "AWS_ENDPOINT_URL_DYNAMODB="+silent(t))
	body := f.within(timeout, event(t, "scheduled"))
	require.Contains(t, string(body), "an endpoint for DynamoDB")
	for _, uri := range []string{one, two} {
		m := f.metrics()[uri]
		require.EqualValues(t, 1, m["MaintenanceFailures"], uri)
		require.EqualValues(t, 1, m["ConsecutiveFailures"], uri)
	}
}

// TestSilentCredentials: whoever gives the credentials does not answer.
func TestSilentCredentials(t *testing.T) {
	t.Parallel()
	table, _ := newTable(t)
	_, uri := upload(t, "emptied")
	const timeout = 20
	f := start(t, "maintain", timeout, "LANCEKEEPER_DATASETS="+uri, "LANCEKEEPER_TABLE="+table,
		"AWS_ACCESS_KEY_ID=", "AWS_SECRET_ACCESS_KEY=", "AWS_CONTAINER_CREDENTIALS_FULL_URI="+silent(t))
	f.within(timeout, event(t, "scheduled"))
	require.EqualValues(t, 1, f.metrics()[uri]["MaintenanceFailures"])
}

// TestOneHangingDataset: whichever request is never answered, the pass ends in its share of the time and is recorded, no row is lost, the
// other dataset is maintained, and once the store answers again so is this one.
func TestOneHangingDataset(t *testing.T) {
	t.Parallel()
	for name, hangs := range map[string]func(r *http.Request) bool{
		"everything": func(*http.Request) bool { return true },
		"list":       func(r *http.Request) bool { return strings.Contains(r.URL.Query().Get("prefix"), "_versions") },
		"manifest": func(r *http.Request) bool {
			return r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/_versions/")
		},
		"data": func(r *http.Request) bool {
			return r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/data/")
		},
		"write": func(r *http.Request) bool { return r.Method == http.MethodPut },
		"commit": func(r *http.Request) bool {
			return r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/_versions/")
		},
		"delete": func(r *http.Request) bool { return r.Method == http.MethodPost },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hanging, hangingURI := upload(t, "upserts-2.1")
			rows := lancetest.Latest(t, hanging)
			_, goodURI := upload(t, "updates")
			g := newGate(t, func(r *http.Request) bool { return hangs(r) && about(r, hangingURI) })
			const timeout = 30
			table, book := newTable(t)
			f := start(t, "maintain", timeout, "LANCEKEEPER_DATASETS="+hangingURI+","+goodURI, "LANCEKEEPER_TABLE="+table, "AWS_ENDPOINT_URL_S3="+g.url)
			f.within(timeout, event(t, "scheduled"))
			require.Positive(t, g.hung.Load())
			all := f.metrics()
			require.EqualValues(t, 0, all[goodURI]["MaintenanceFailures"])
			require.EqualValues(t, 0, all[goodURI]["UnreclaimedVersions"])
			require.Positive(t, all[goodURI]["VersionsRemoved"])
			require.EqualValues(t, 1, all[hangingURI]["MaintenanceFailures"], "unfinished, since nothing was answered")
			require.NotEqualValues(t, 0, all[hangingURI]["UnreclaimedVersions"], "left out, or the backlog")
			e, found, err := book.Load(t.Context(), hangingURI)
			require.NoError(t, err)
			require.True(t, found)
			require.Nil(t, e.Started, "the pass is recorded as ended")
			require.Nil(t, e.LastSuccess)
			require.Equal(t, rows, lancetest.Latest(t, hanging))
			lancetest.Whole(t, hanging)

			g.open()
			f.eventually(maintain.OK)
			require.EqualValues(t, 0, f.metrics()[hangingURI]["UnreclaimedVersions"])
			require.Equal(t, rows, lancetest.Latest(t, hanging))
			lancetest.Whole(t, hanging)
		})
	}
}

// TestReportBesideAHangingDataset: the others are measured, and the gauges leave.
func TestReportBesideAHangingDataset(t *testing.T) {
	t.Parallel()
	store, goodURI := upload(t, "tags")
	_, hangingURI := upload(t, "emptied")
	table, _ := newTable(t)
	g := newGate(t, func(r *http.Request) bool { return about(r, hangingURI) })
	const timeout = 8
	f := start(t, "report", timeout, "LANCEKEEPER_DATASETS="+hangingURI+","+goodURI, "LANCEKEEPER_TABLE="+table, "AWS_ENDPOINT_URL_S3="+g.url)
	body := f.within(timeout, event(t, "scheduled"))
	require.Contains(t, string(body), hangingURI)
	require.Positive(t, g.hung.Load())
	require.EqualValues(t, versions(t, store), f.metrics()[goodURI]["UnreclaimedVersions"])
	require.NotContains(t, f.metrics(), hangingURI, "what was not measured is left out")
}
