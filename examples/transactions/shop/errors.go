package shop

import (
	"encoding/json"
	"errors"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/cacheguard/go/cacheguard"
)

// PgErrors lets PostgreSQL's errors travel to the instances that waited for a load: their code, and what it is about. It is a CacheConfig.ErrorCodec. Detail, Where and
// the texts of queries stay on the instance that loaded, because they may quote rows, and Redis remembers a failure for a while.
type PgErrors struct{}

var _ cacheguard.ErrorCodec = PgErrors{}

// pgError is what travels of a pgconn.PgError.
type pgError struct {
	Severity, Code, Message, Schema, Table, Column, Type, Constraint string `json:",omitempty"`
}

const most = 512 // bytes of an error that travels

// EncodeError encodes the *pgconn.PgError in the error, if there is one.
func (PgErrors) EncodeError(err error) []byte {
	e, is := errors.AsType[*pgconn.PgError](err)
	if !is {
		return nil
	}
	p := pgError{
		Severity: e.SeverityUnlocalized, Code: e.Code, Message: e.Message,
		Schema: e.SchemaName, Table: e.TableName, Column: e.ColumnName, Type: e.DataTypeName, Constraint: e.ConstraintName,
	}
	data, err := json.Marshal(p)
	if err == nil && len(data) > most {
		data, err = json.Marshal(pgError{Severity: p.Severity, Code: p.Code})
	}
	if err != nil {
		return nil // only the text travels
	}
	return data
}

// DecodeError makes a *pgconn.PgError with the same code.
func (PgErrors) DecodeError(data []byte) error {
	var p pgError
	if json.Unmarshal(data, &p) != nil || p.Code == "" {
		return nil //nolint:nilerr // it is another version's
	}
	return &pgconn.PgError{
		Severity: p.Severity, SeverityUnlocalized: p.Severity, Code: p.Code, Message: p.Message,
		SchemaName: p.Schema, TableName: p.Table, ColumnName: p.Column, DataTypeName: p.Type, ConstraintName: p.Constraint,
	}
}
