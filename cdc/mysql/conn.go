package mysql

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"time"

	"github.com/go-mysql-org/go-mysql/client"
	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-mysql-org/go-mysql/replication"
	driver "github.com/go-sql-driver/mysql"
)

// parse reads a Config.Conn.
func parse(text string) (*driver.Config, error) {
	conn, err := driver.ParseDSN(text)
	if err != nil {
		return nil, err
	}
	conn.ParseTime, conn.InterpolateParams, conn.Logger = false, false, &driver.NopLogger{}
	if conn.Timeout == 0 {
		conn.Timeout = timeout
	}
	return conn, nil
}

// connect says how to connect the next time.
func connect(conn *driver.Config, newConn func(context.Context) (string, error)) func(context.Context) (*driver.Config, error) {
	return func(ctx context.Context) (*driver.Config, error) {
		if newConn == nil {
			return conn.Clone(), nil
		}
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		text, err := newConn(ctx)
		if err != nil {
			return nil, fmt.Errorf("cdc/mysql: %w", err)
		}
		return parse(text)
	}
}

// connector asks how to connect before each connection.
type connector struct{ feed *Feed }

// Connect is part of driver.Connector.
func (c connector) Connect(ctx context.Context) (sqldriver.Conn, error) {
	cfg, err := c.feed.conn(ctx)
	if err != nil {
		return nil, err
	}
	one, err := driver.NewConnector(cfg)
	if err != nil {
		return nil, fmt.Errorf("cdc/mysql: %w", err)
	}
	return one.Connect(ctx)
}

// Driver is part of driver.Connector.
func (connector) Driver() sqldriver.Driver { return driver.MySQLDriver{} }

// open returns connections for statements.
func (f *Feed) open() *sql.DB { return sql.OpenDB(connector{f}) }

// syncer is how to connect for the log. The reader of the log does not fall back to a connection without TLS by itself, as tls=preferred has it.
func (f *Feed) syncer(ctx context.Context, db *sql.DB) (cfg replication.BinlogSyncerConfig, err error) {
	conn, err := f.conn(ctx)
	if err != nil {
		return cfg, err
	}
	if conn.AllowFallbackToPlaintext {
		var has string
		if err := db.QueryRowContext(ctx, "SELECT @@have_ssl").Scan(&has); err != nil {
			return cfg, fmt.Errorf("cdc/mysql: ask for TLS: %w", err)
		}
		if has != "YES" {
			conn.TLS = nil
		}
	}
	cfg = replication.BinlogSyncerConfig{
		ServerID: f.cfg.ServerID, Flavor: mysql.MariaDBFlavor, Host: conn.Addr, User: conn.User, Password: conn.Passwd, TLSConfig: conn.TLS,
		Localhost: "cacheguard", DisableRetrySync: true, HeartbeatPeriod: time.Second, ReadTimeout: silence, TimestampStringLocation: time.UTC,
		Logger: slog.New(slog.DiscardHandler), Dialer: (&net.Dialer{}).DialContext, RowsEventDecodeFunc: f.decode,
	}
	if conn.Net == "tcp" {
		host, port, _ := net.SplitHostPort(conn.Addr) // ParseDSN has made it
		n, _ := strconv.ParseUint(port, 10, 16)       // a number, too
		cfg.Host, cfg.Port = host, uint16(n)
	}
	return cfg, nil
}

// checkReader connects as the reader of the log does.
func (f *Feed) checkReader(ctx context.Context, db *sql.DB) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	cfg, err := f.syncer(ctx, db)
	if err != nil {
		return err
	}
	network, addr := "unix", cfg.Host
	if cfg.Port != 0 {
		network, addr = "tcp", net.JoinHostPort(cfg.Host, strconv.Itoa(int(cfg.Port)))
	}
	conn, err := client.ConnectWithDialer(ctx, network, addr, cfg.User, cfg.Password, "", cfg.Dialer, func(c *client.Conn) error {
		if cfg.TLSConfig != nil {
			c.SetTLSConfig(cfg.TLSConfig)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("cdc/mysql: connect to read the log: %w", err)
	}
	_ = conn.Close() // it was there
	return nil
}
