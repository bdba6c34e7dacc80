package s3store

import (
	"context"
	"encoding/xml"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"lancekeeper/internal/objstore"
)

func failures(failed []objstore.KeyError) map[string]string {
	codes := map[string]string{}
	for _, f := range failed {
		codes[f.Key] = f.Code
	}
	return codes
}

// TestDeleteErrorsOfKeys: those that may pass are tried again, alone; the others are reported, and none ends the batch.
func TestDeleteErrorsOfKeys(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var asked []string
	tries := 0
	web := &server{always: func(r *reply) {
		var b batch
		if err := xml.Unmarshal([]byte(r.body), &b); err != nil {
			refuse(http.StatusBadRequest, "MalformedXML")(r)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		tries++
		names := make([]string, len(b.Object))
		for i, o := range b.Object {
			names[i] = o.Key
		}
		asked = append(asked, strings.Join(names, ","))
		faults := map[string]string{}
		for key, code := range map[string]string{
			"root/denied": "AccessDenied", "root/slow": "SlowDown", "root/once": "InternalError", "root/gone": "NoSuchKey",
		} {
			if slices.Contains(names, key) && (key != "root/once" || tries == 1) {
				faults[key] = code
			}
		}
		failKeys(faults)(r)
	}}
	failed, err := serve(t, web, Options{}).Delete(t.Context(), []string{"fine", "denied", "slow", "once", "gone"})
	require.NoError(t, err)
	require.Equal(t, map[string]string{"denied": "AccessDenied", "slow": "SlowDown"}, failures(failed))
	for _, f := range failed {
		require.ErrorIs(t, f, map[string]error{"denied": objstore.ErrDenied, "slow": objstore.ErrThrottled}[f.Key])
	}
	require.Len(t, asked, keyAttempts)
	require.Equal(t, "root/fine,root/denied,root/slow,root/once,root/gone", asked[0])
	require.ElementsMatch(t, []string{"root/slow", "root/once"}, strings.Split(asked[1], ","))
	require.Equal(t, "root/slow", asked[2])
}

func TestDeleteInBatches(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var sizes []int
	var full int // batches with an answer for each key: the first tells whether deletes only hide
	web := &server{always: func(r *reply) {
		var b batch
		_ = xml.Unmarshal([]byte(r.body), &b)
		mu.Lock()
		sizes = append(sizes, len(b.Object))
		if !b.Quiet {
			full++
		}
		mu.Unlock()
		say(http.StatusOK, "<DeleteResult></DeleteResult>")(r)
	}}
	keys := make([]string, 2500)
	for i := range keys {
		keys[i] = fmt.Sprint("k", i)
	}
	failed, err := serve(t, web, Options{}).Delete(t.Context(), keys)
	require.NoError(t, err)
	require.Empty(t, failed)
	require.ElementsMatch(t, []int{1000, 1000, 500}, sizes)
	require.Equal(t, 1, full)
}

// TestDeleteAsAWhole: an answer that is no answer about keys ends it, with its class.
func TestDeleteAsAWhole(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		always func(*reply)
		want   error
	}{
		"denied":    {refuse(403, "AccessDenied"), objstore.ErrDenied},
		"throttled": {refuse(503, "SlowDown"), objstore.ErrThrottled},
		"no bucket": {refuse(404, "NoSuchBucket"), &NoBucketError{}},
		"lost":      {lost, errUnclassed},
	} {
		for _, key := range []string{"plain", "bell\a"} {
			_, err := serve(t, &server{always: c.always}, Options{}).Delete(t.Context(), []string{key})
			if key == "plain" || name == "no bucket" || name == "lost" {
				requireClass(t, c.want, err)
			} else {
				require.NoError(t, err, "%s: what is said of one key is that key's", name)
			}
		}
	}
}

// TestDeleteWithoutBatches: some servers have none, or want a form of it that the SDK no longer sends.
func TestDeleteWithoutBatches(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"NotImplemented", "MalformedXML", "MethodNotAllowed", "MissingContentMD5"} {
		web := &server{always: func(r *reply) {
			switch {
			case r.request.Method == http.MethodPost:
				refuse(http.StatusBadRequest, code)(r)
			case strings.HasSuffix(r.request.URL.Path, "/denied"):
				refuse(http.StatusForbidden, "AccessDenied")(r)
			case strings.HasSuffix(r.request.URL.Path, "/gone"):
				refuse(http.StatusNotFound, "NoSuchKey")(r)
			default:
				say(http.StatusNoContent, "")(r)
			}
		}}
		failed, err := serve(t, web, Options{}).Delete(t.Context(), []string{"fine", "denied", "gone"})
		require.NoError(t, err, code)
		require.Equal(t, map[string]string{"denied": "AccessDenied"}, failures(failed), code)
		require.ErrorIs(t, failed[0], objstore.ErrDenied)
		require.ElementsMatch(t, []string{
			"POST /bucket?delete=", "DELETE /bucket/root/fine", "DELETE /bucket/root/denied", "DELETE /bucket/root/gone",
		}, web.seen())
	}
}

// TestDeleteOfNamesThatXMLCantCarry: they go one by one, the others together.
func TestDeleteOfNamesThatXMLCantCarry(t *testing.T) {
	t.Parallel()
	web := &server{always: func(r *reply) {
		if r.request.Method == http.MethodPost {
			failKeys(map[string]string{"root/<&>": "AccessDenied"})(r)
			return
		}
		say(http.StatusNoContent, "")(r)
	}}
	failed, err := serve(t, web, Options{}).Delete(t.Context(), []string{"<&>", "a\x01", "b\n", "c\xff", "d\uFFFE", "e"})
	require.NoError(t, err)
	require.Equal(t, map[string]string{"<&>": "AccessDenied"}, failures(failed))
	require.ElementsMatch(t, []string{
		"POST /bucket?delete=", "DELETE /bucket/root/a\x01", "DELETE /bucket/root/b\n", "DELETE /bucket/root/c\xff", "DELETE /bucket/root/d\uFFFE",
	}, web.seen())
}

func TestDeleteCutOffBetweenAttempts(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	web := &server{}
	store := serve(t, web, Options{})
	store.firstPause = maxBackoff
	web.always = func(r *reply) {
		failKeys(map[string]string{"root/a": "SlowDown"})(r)
		cancel()
	}
	_, err := store.Delete(ctx, []string{"a"})
	require.ErrorIs(t, err, context.Canceled)
}
