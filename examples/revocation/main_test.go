package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

var shared *redistest.Server

func TestMain(m *testing.M) { redistest.Main(m, &shared) }

func TestWhatIsRevokedOnOneInstanceIsRefusedByTheOther(t *testing.T) {
	t.Setenv("REDIS_URL", "redis://"+shared.Addr())
	var out, problems strings.Builder
	if code := example().Execute(t.Context(), nil, &out, &problems); code != 0 { // it checks the bounds
		t.Fatal(code, problems.String(), out.String())
	}
	for _, text := range []string{"an API key, by Update ", "a session, by Update ", "a user, by Intend ", "a permission, by SQL ", "a flag, by Update "} {
		if !strings.Contains(out.String(), text) {
			t.Errorf("it does not say %q:\n%s", text, out.String())
		}
	}
	t.Log(out.String())
}

// open returns an Access on a server of its own.
func open(t *testing.T) (*Access, *redistest.Server) {
	t.Helper()
	db, err := openDatabase(t.Context())
	must(t, err)
	t.Cleanup(func() { must(t, db.Close()) })
	server := redistest.Start(t)
	a, err := Open(server.Client(t), "test", db.DB)
	must(t, err)
	t.Cleanup(func() { must(t, a.Close()) })
	must(t, seed(t.Context(), a))
	return a, server
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// byHTTP and byGRPC are what the doors answer.
func byHTTP(a *Access, token string) int {
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
	r.Header.Set("Authorization", "Bearer "+token)
	a.Needs("orders.read")(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})).ServeHTTP(w, r)
	return w.Code
}

func byGRPC(t *testing.T, a *Access, token, method string) codes.Code {
	t.Helper()
	ctx := metadata.NewIncomingContext(t.Context(), metadata.Pairs("authorization", "Bearer "+token))
	_, err := a.Interceptor(map[string]string{"/shop/Orders": "orders.read"})(ctx, nil, &grpc.UnaryServerInfo{FullMethod: method},
		func(context.Context, any) (any, error) { return "orders", nil })
	return status.Code(err)
}

func TestWithoutRedisNobodyIsAdmittedAndARevocationIsWrittenAllTheSame(t *testing.T) {
	t.Parallel()
	a, server := open(t)
	for _, token := range []string{"key_1", "session_1"} {
		expect.Equal(t, "admitted", byHTTP(a, token), http.StatusOK)
		expect.Equal(t, "admitted", byGRPC(t, a, token, "/shop/Orders"), codes.OK)
	}
	server.Kill()
	for _, token := range []string{"key_1", "session_1"} {
		expect.Equal(t, "chi", byHTTP(a, token), http.StatusServiceUnavailable)
		expect.Equal(t, "gRPC", byGRPC(t, a, token, "/shop/Orders"), codes.Unavailable)
	}
	if err := a.RevokeKey(t.Context(), "key_1"); err == nil {
		t.Error("nobody hears that other instances may admit it for now")
	}
	var left int
	must(t, a.db.QueryRowContext(t.Context(), `SELECT count(*) FROM api_keys WHERE id = $1`, hash("key_1")).Scan(&left))
	expect.Equal(t, "keys left", left, 0)
	server.Restart()
	redistest.Await(t, "the session is admitted again", func() bool { return byHTTP(a, "session_1") == http.StatusOK })
	redistest.Await(t, "the key is unknown", func() bool {
		code := byHTTP(a, "key_1")
		if code == http.StatusOK {
			t.Fatal("the key is admitted")
		}
		return code == http.StatusUnauthorized // before, what is pending is not known
	})
}

func TestTheDoorsRefuseWhatIsUnknownForbiddenOrNotNamed(t *testing.T) {
	t.Parallel()
	a, _ := open(t)
	_, err := a.db.ExecContext(t.Context(), `DELETE FROM permissions WHERE user_id = 2`)
	must(t, err)
	for token, want := range map[string]struct {
		web int
		rpc codes.Code
	}{
		"key_1": {http.StatusOK, codes.OK}, "session_1": {http.StatusOK, codes.OK},
		"key_2": {http.StatusForbidden, codes.PermissionDenied}, "session_2": {http.StatusForbidden, codes.PermissionDenied},
		"key_9": {http.StatusUnauthorized, codes.Unauthenticated}, "session_9": {http.StatusUnauthorized, codes.Unauthenticated}, "": {http.StatusUnauthorized, codes.Unauthenticated},
	} {
		expect.Equal(t, "chi for "+token, byHTTP(a, token), want.web)
		expect.Equal(t, "gRPC for "+token, byGRPC(t, a, token, "/shop/Orders"), want.rpc)
	}
	expect.Equal(t, "a method without a permission", byGRPC(t, a, "key_1", "/shop/Other"), codes.PermissionDenied)
}

func TestASessionIsAdmittedFromSignInOnAndTheCacheDoesNotOutliveIt(t *testing.T) {
	t.Parallel()
	a, _ := open(t)
	for token, ends := range map[string]time.Time{"ended": time.Now().Add(-time.Second), "ends": time.Now().Add(time.Minute)} {
		expect.Equal(t, "tried before", byHTTP(a, token), http.StatusUnauthorized)
		must(t, a.SignIn(t.Context(), token, 1, ends))
	}
	expect.Equal(t, "the key on the page", a.permissions.Key(42), "permissions:42")
	expect.Equal(t, "ended", byHTTP(a, "ended"), http.StatusUnauthorized)
	expect.Equal(t, "ends", byHTTP(a, "ends"), http.StatusOK)
	redistest.Await(t, "it is stored", func() bool {
		in, err := a.guard.Inspect(t.Context(), a.sessions.Key(hash("ends")))
		must(t, err)
		return in.FreshFor > 0 && in.FreshFor <= time.Minute
	})
}
