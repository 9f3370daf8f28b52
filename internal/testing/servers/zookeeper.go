package servers

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/redistest"
)

// ZooKeeper is a member of a ZooKeeper ensemble of the test's own.
type ZooKeeper struct {
	daemon

	Addr string

	data string
}

// Lose makes it lose its data, and starts it without any: it gets them from the others.
func (m *ZooKeeper) Lose() {
	m.tb.Helper()
	m.Kill()
	m.lose(filepath.Join(m.data, "version-2"))
	m.Start()
}

// zookeeperJar is where Debian and the package of Apache put it.
var zookeeperJar = []string{"/usr/share/java", "/usr/share/zookeeper", "/usr/share/zookeeper/lib", "/opt/zookeeper/lib"}

// StartZooKeeper starts an ensemble of n members, and returns when each of them leads or follows. A tick is half a second. They do not wait
// for their disks, unless properties say so.
func StartZooKeeper(tb testing.TB, n int, properties ...string) []*ZooKeeper {
	tb.Helper()
	java, jar := find(tb, "java"), find(tb, "zookeeper.jar", zookeeperJar...)
	members := make([]*ZooKeeper, n)
	var ensemble strings.Builder
	for i := range members {
		members[i] = &ZooKeeper{Addr: fmt.Sprintf("127.0.0.1:%d", redistest.FreePort(tb))}
		if n > 1 {
			fmt.Fprintf(&ensemble, "server.%d=127.0.0.1:%d:%d\n", i+1, redistest.FreePort(tb), redistest.FreePort(tb))
		}
	}
	for i, m := range members {
		config := m.configure(tb, i+1, ensemble.String())
		m.daemon = daemon{
			tb:    tb,
			crash: syscall.SIGKILL,
			ready: func() bool { return m.Mode() != "" },
			command: func() *exec.Cmd {
				args := []string{
					"-Xmx96m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData",
					"-Dzookeeper.4lw.commands.whitelist=srvr", "-Dzookeeper.admin.enableServer=false", "-Dzookeeper.forceSync=no",
					"-Dzookeeper.fastleader.maxNotificationInterval=1000", // in ms. By default members that were frozen wait up to a minute between votes
				}
				for _, p := range properties { // the last one counts
					args = append(args, "-D"+p)
				}
				return exec.Command(java, append(args, "-cp", jar, "org.apache.zookeeper.server.quorum.QuorumPeerMain", config)...)
			},
		}
		m.begin()
	}
	for _, m := range members {
		m.await()
	}
	return members
}

// configure writes a member's configuration.
func (m *ZooKeeper) configure(tb testing.TB, id int, ensemble string) (path string) {
	tb.Helper()
	dir := directory(tb)
	m.data, path = dir, filepath.Join(dir, "zoo.cfg")
	_, port, _ := net.SplitHostPort(m.Addr) // it has one
	config := fmt.Sprintf("tickTime=500\nmaxSessionTimeout=60000\ninitLimit=40\nsyncLimit=4\ndataDir=%s\nclientPort=%s\nclientPortAddress=127.0.0.1\n%s",
		dir, port, ensemble)
	for name, text := range map[string]string{path: config, filepath.Join(dir, "myid"): fmt.Sprint(id)} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			tb.Fatal(err)
		}
	}
	return path
}

// Mode is standalone, leader or follower, or empty while the member serves nobody.
func (m *ZooKeeper) Mode() string {
	conn, err := net.DialTimeout("tcp", m.Addr, time.Second)
	if err != nil {
		return ""
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(5 * time.Second)) // without one it would only take longer
	_, _ = io.WriteString(conn, "srvr")                   // the answer is empty then
	answer, _ := io.ReadAll(conn)
	_, mode, _ := strings.Cut(string(answer), "Mode: ")
	mode, _, _ = strings.Cut(mode, "\n")
	return mode
}
