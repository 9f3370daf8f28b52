package memory

import (
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cacheguard/go/internal/testing/redistest"
)

// What does not run here of the tests that docs/guarantees.md names, as patterns of -skip, and what it needs of servers that this engine is not.
const (
	needCluster  = "nodes and slots of a cluster, or a Sentinel"
	needReplica  = "a replica, which is cut off or promoted"
	needRefusals = "a server that refuses PUBLISH in scripts, as a text does that a proxy puts before each of them"
	needUsers    = "users with few rights"
)

var away = map[string]string{
	"Test/(cluster|sentinel|serverless)":                                               needCluster,
	"Test/few_rights":                                                                  needUsers,
	"TestWhatALoadReturnsReachesWhoeverWaitsForIt/./that_polls$":                       needUsers,
	"TestAFailoverForgetsNothingThatAReplicaHasAcknowledged":                           needReplica,
	"TestAnInvalidationThatNoReplicaHasIsAnErrorAndPendingUntilOneDoes":                needReplica,
	"TestNoServerVouchesForWritesThatAreMadeElsewhere":                                 needReplica,
	"TestANoticeThatIsLostOnAClustersBusIsMissedWithinSeconds":                         needCluster,
	"TestAKindAndEverythingCanBeInvalidatedOnTheOtherNodesWhileANodeIsAway":            needCluster,
	"TestTaggedEntriesOfOtherNodesAreHitsWhileANodeIsAwayAndTheirTagsCanBeInvalidated": needCluster,
	"TestInvalidationsOfANodeThatHangsArePendingAndThoseOfOthersSent":                  needCluster,
	"TestNoDrawnWriteInOrderLeavesAnOldValueOfWhatIsMadeOfOthers":                      needCluster,
	"TestWhatAWriterNamesLaterEndsWhenRedisHasAcknowledgedWhatItNamesFirst":            needCluster,
	"TestWhatComesAfterWhatIsPendingEndsAgainAfterIt":                                  needCluster,
	"TestNothingStaleIsReadWhileSlotsMoveKeyByKey":                                     needCluster,
	"TestInvalidationsOfKeysWhoseSlotIsMovedAreDone":                                   needCluster,
	"TestTagsWhoseEpochsAreMovedCanBeInvalidated":                                      needCluster,
	"TestIntentsOnKeysWhoseSlotIsMovedAreDone":                                         needCluster,
	"TestATierIsNotUsedOnAServerWhoseScriptsMayNotPublish":                             needRefusals,
	"TestAnEchoThatIsPublishedWithoutAScriptVouchesForWhatNeverArrives":                needRefusals,
	"TestOnAServerWhoseScriptsMayNotPublishTheProcessSendsNotices":                     needRefusals,
	"TestOnAServerWhoseScriptsMayNotPublishWaitersAreWokenAllTheSame":                  needRefusals,
	"TestWhatAServerRefusesToPublishWithinAScriptItsProcessPublishes":                  needRefusals,
}

// beside are more tests of package cacheguard that run here.
var beside = []string{"TestPromises", "TestSelfCheckSucceedsWhereEverythingWorks", "TestAClockThatIsWrongDoesNotMakeEntriesStale"}

// folders have the tests of the promises.
var folders = []string{"cacheguard", "middleware", "bench", "internal/redis/wake", "internal/redis/script"}

// TestPromisesHoldInMemory runs tests of promises on this engine, in the place of redis-server: REDISTEST_SERVER is the switch. make engines
// has it run all, and thoroughly; else it draws some of package cacheguard, whose program is linked.
func TestPromisesHoldInMemory(t *testing.T) {
	t.Parallel()
	all := os.Getenv("PROMISES") == "all"
	here := map[string][]string{"cacheguard": beside}
	for _, name := range promised(t) {
		if away[name] == "" && (all || rand.IntN(4) == 0) {
			folder := folderOf(t, name)
			here[folder] = append(here[folder], name)
		}
	}
	for folder, names := range here {
		if folder != "cacheguard" && !all {
			continue
		}
		t.Run(folder, func(t *testing.T) {
			t.Parallel()
			runHere(t, folder, names, all)
		})
	}
}

func TestWhatIsAwayIsPromised(t *testing.T) {
	t.Parallel()
	all := promised(t)
	for pattern := range away {
		if name, _, _ := strings.Cut(pattern, "/"); name != "Test" && !slices.Contains(all, name) {
			t.Errorf("docs/guarantees.md does not name %s", name)
		}
	}
}

// promised are the tests that docs/guarantees.md names.
func promised(t *testing.T) (names []string) {
	t.Helper()
	text, err := os.ReadFile("../docs/guarantees.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "\n### The test of each\n")
	table, _, _ := strings.Cut(rest, "\n## ")
	for _, found := range regexp.MustCompile("`(Test\\w+)`").FindAllStringSubmatch(table, -1) {
		names = append(names, found[1])
	}
	slices.Sort(names)
	if names = slices.Compact(names); len(names) < 70 {
		t.Fatalf("docs/guarantees.md names only %q", names)
	}
	return names
}

func folderOf(t *testing.T, test string) string {
	t.Helper()
	for _, folder := range folders {
		if exec.CommandContext(t.Context(), "grep", "-rq", "^func "+test+"(", "../"+folder, "--include=*_test.go").Run() == nil {
			return folder
		}
	}
	t.Fatalf("no folder of %q has %s", folders, test)
	return ""
}

// runHere runs tests of a folder on this engine, and sees that each has passed.
func runHere(t *testing.T, folder string, names []string, thorough bool) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	tests, skipped := "^("+strings.Join(names, "|")+")$", strings.Join(slices.Collect(maps.Keys(away)), "|")
	cmd := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-v", "-vet=off", "-timeout=30m", "-parallel=16", "-run", tests, "-skip", skipped, ".")
	if program := os.Getenv("CACHEGUARD_TEST_PROGRAM"); program != "" && folder == "cacheguard" { // make test has linked it already
		cmd = exec.CommandContext(t.Context(), program, "-test.v", "-test.timeout=30m", "-test.parallel=16", "-test.run="+tests, "-test.skip="+skipped)
	}
	cmd.Dir = "../" + folder
	cmd.Env = append(os.Environ(), "REDISTEST_SERVER="+self, "CACHEGUARD_TEST_BEHIND="+startBehind(t, self))
	if !thorough {
		cmd.Env = append(cmd.Env, "THOROUGH=")
	}
	text, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	for _, name := range names {
		if !strings.Contains(string(text), "--- PASS: "+name+" ") {
			t.Errorf("%s was not run:\n%s", name, text)
		}
	}
}

// startBehind starts a server whose clock is behind, and returns its address.
func startBehind(t *testing.T, self string) string {
	t.Helper()
	port := strconv.Itoa(redistest.FreePort(t))
	redistest.Serve(t, exec.CommandContext(t.Context(), self, "--port", port, behind))
	addr := net.JoinHostPort("127.0.0.1", port)
	redistest.Await(t, "it listens", func() bool {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", addr)
		if err == nil {
			_ = conn.Close() // always nil
		}
		return err == nil
	})
	return addr
}
