package cacheguard

import (
	"strings"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// promises are what a Guard promises on every kind of Redis.
var promises = []struct {
	name string
	test func(*testing.T, arena)
}{
	{"ManyCallersOnManyInstancesShareOneLoad", promiseOneLoad},
	{"AHitIsServedFromRedis", promiseHit},
	{"InvalidateStopsARunningLoadFromStoring", promiseInvalidateDuringLoad},
	{"JoinersGetNothingOlderThanTheirCall", promiseJoinersAskAgain},
	{"AbsenceIsRemembered", promiseAbsence},
	{"AFailureIsSharedAndNotRepeated", promiseFailure},
	{"ACancelledLoadLetsTheNextOneIn", promiseCancelledLoad},
	{"ASlowLoadKeepsItsLease", promiseRenewal},
	{"ALoadThatLostItsLeaseStoresUnlessOvertaken", promiseLostLease},
	{"BusyLoadersDoNotHoldUpWhatAnotherInstanceLoads", promiseBusyLoaders},
	{"EveryKeyHasATTL", promiseTTL},
	{"AnyKeyWorks", promiseAnyKey},
	{"InvalidateTakesManyKeys", promiseInvalidateMany},
	{"ManyKeysAreLoadedInOneCallByWhoGotTheirLeases", promiseMany},
	{"StaleValuesAreServedWhileOneInstanceLoads", promiseStale},
	{"InvalidateAllReachesEveryKey", promiseInvalidateAll},
	{"TagsReachAllEntriesThatHaveThem", promiseTagsReachAllEntries},
	{"TagsReachALoadUnderWay", promiseTagsOfALoadUnderWay},
	{"TagsReachAnotherInstancesLoad", promiseTagsOfAnotherInstancesLoad},
	{"TagsReachWhatGetManyLoaded", promiseManyWithTags},
	{"AnIntentInvalidatesWhatItNamesWhenItIsDone", promiseIntent},
	{"ALoadThatBeganBeforeAnIntentWasDoneStoresNothing", promiseIntentDuringLoad},
	{"WhatIsCachedWhileAnIntentStandsEndsWithIt", promiseIntentExpires},
	{"AnUpdateInvalidatesWhatItsWriteNames", promiseAlso},
	{"ACachesErrorsAreTheSameOnEveryInstance", promiseNamedErrors},
	{"ACachesErrorsKeepTheirTypeOnEveryInstance", promiseTypedErrors},
	{"ACachesGetManyHasWhatThereIs", promiseNamedMany},
	{"ACachesPutAndUpdateAreSeenByTheNextGet", promiseNamedWrites},
	{"ACachesTagsAndInvalidateAllReachItsEntries", promiseNamedTags},
	{"InspectSaysWhoLoadsAndWhatIsThere", promiseInspect},
	{"ABypassOfTheFleetReachesTheOthers", promiseBypassFleet},
	{"CloseLeavesNothingBehind", promiseClose},
	{"ScriptsAreSentAgainWhenTheServerForgotThem", promiseScriptFlush},
}

func TestPromises(t *testing.T) {
	t.Parallel()
	arenas := map[string]func(*testing.T) arena{
		"cache standalone": named(alone), "standalone": alone, "cluster": onCluster, "serverless": onServerless,
	}
	if expect.Samples(0, 1) > 0 {
		arenas["sentinel"], arenas["few rights"] = onSentinel, withFewRights
		arenas["cache cluster"], arenas["cache serverless"], arenas["cache with few rights"] = named(onCluster), named(onServerless), named(withFewRights)
	}
	expect.Each(t, arenas, func(t *testing.T, name string, build func(*testing.T) arena) {
		a := build(t)
		for _, p := range promises {
			expect.Beside(t, p.name, func(t *testing.T) {
				p.test(t, a)
			})
		}
	})
}

// named is the arena where values are got through a Cache.
func named(build func(*testing.T) arena) func(*testing.T) arena {
	return func(t *testing.T) arena {
		a := build(t)
		a.named = true
		return a
	}
}

// withFewRights is the arena where a Guard may do what the line of docs/redis.md says and no more, and its scripts touch no key that they
// do not declare.
func withFewRights(t *testing.T) arena {
	_, rules, _ := strings.Cut(pasted(t), " >PASSWORD ")
	user := shared.As(t, strings.Fields(strings.ReplaceAll(rules, "shop:", "test-*:"))...)
	return arena{
		patience: time.Minute, // each script is looked at
		client:   func(tb testing.TB) client { return redistest.DeclaredKeys(tb, shared.Client(tb, user)) },
		around:   func(tb testing.TB) client { return shared.Client(tb) },
	}
}

// alone is a server whose scripts a promise may have forgotten: on the shared one, a request that another test holds back would find no script.
func alone(t *testing.T) arena {
	s := redistest.Start(t)
	return arena{client: func(tb testing.TB) client { return s.Client(tb) }}
}

func onCluster(t *testing.T) arena {
	shared := redistest.SharedCluster(t)
	return arena{client: func(tb testing.TB) client { return shared.Client(tb) }}
}

func onSentinel(t *testing.T) arena {
	s := redistest.StartSentinel(t)
	return arena{client: func(tb testing.TB) client { return s.FailoverClient(tb) }}
}
