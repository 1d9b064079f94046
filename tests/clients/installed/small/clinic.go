// What pgx and lib/pq do at Keyhole: `clinic` with PGHOST and so on; a failure is a panic.
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"

	"github.com/jackc/pgconn"
	"github.com/jackc/pgx/v4"
	"github.com/lib/pq"
)

const question = "SELECT ward FROM visits WHERE ward IN ($1,$2) GROUP BY ward HAVING count(*) > $3 ORDER BY ward"
const listed = "SELECT ward FROM visits WHERE ward = ANY ($1) GROUP BY ward HAVING count(*) > $2 ORDER BY ward"
const domain = "SELECT DISTINCT ward FROM visits WHERE ward IN ($1,$2) ORDER BY 1"
const refused = "SELECT age FROM visits"

func insist(name string, found, expected any) {
	if !reflect.DeepEqual(found, expected) {
		panic(fmt.Sprintf("%s: %v, not %v", name, found, expected))
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

type rows interface {
	Next() bool
	Scan(...any) error
	Err() error
}

func wards(found rows, err error) []string {
	must(err)
	var all []string
	for found.Next() {
		var ward string
		must(found.Scan(&ward))
		all = append(all, ward)
	}
	must(found.Err())
	return all
}

// Prepared by the server, told in binary; or all of it in one text.
func withPgx(simple bool) {
	ctx := context.Background()
	place, err := pgx.ParseConfig("")
	must(err)
	place.PreferSimpleProtocol = simple
	keyhole, err := pgx.ConnectConfig(ctx, place)
	must(err)
	defer keyhole.Close(ctx)
	for i := 0; i < 2; i++ {
		insist("parameters", wards(keyhole.Query(ctx, question, "A", "D", 1000)), []string{"A"})
	}
	insist("list", wards(keyhole.Query(ctx, listed, []string{"A", "D"}, 1000)), []string{"A"})
	insist("domain", wards(keyhole.Query(ctx, domain, "B", "A")), []string{"A", "B"})
	var hint *pgconn.PgError
	_, err = keyhole.Exec(ctx, refused)
	insist("a refusal", errors.As(err, &hint), true)
	insist("code", hint.Code, "42501")
	insist("text", strings.HasPrefix(hint.Message, "KH103: "), true)
	insist("hint", strings.HasPrefix(hint.Hint, "Instead you can ask: SELECT ward FROM visits GROUP BY ward"), true)
	_, err = keyhole.CopyFrom(ctx, pgx.Identifier{"visits"}, []string{"ward"}, pgx.CopyFromRows([][]any{{"A"}}))
	insist("writing", err != nil, true)
	insist("after it", wards(keyhole.Query(ctx, domain, "B", "A")), []string{"A", "B"})
}

func withPq() {
	keyhole, err := sql.Open("postgres", "")
	must(err)
	defer keyhole.Close()
	for i := 0; i < 2; i++ {
		insist("parameters", wards(keyhole.Query(question, "A", "D", 1000)), []string{"A"})
	}
	insist("list", wards(keyhole.Query(listed, pq.Array([]string{"A", "D"}), 1000)), []string{"A"})
	insist("domain", wards(keyhole.Query(domain, "B", "A")), []string{"A", "B"})
	var hint *pq.Error
	_, err = keyhole.Exec(refused)
	insist("a refusal", errors.As(err, &hint), true)
	insist("code", string(hint.Code), "42501")
	insist("hint", strings.HasPrefix(hint.Hint, "Instead you can ask: SELECT ward FROM visits GROUP BY ward"), true)
}

func main() {
	withPgx(false)
	withPgx(true)
	if os.Getenv("PGSSLMODE") == "" {
		os.Setenv("PGSSLMODE", "disable") // lib/pq insists on TLS otherwise
	}
	withPq()
	fmt.Println("done")
}
