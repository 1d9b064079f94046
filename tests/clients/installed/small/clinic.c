/* What a C program does at Keyhole with libpq: PGHOST and so on say where it is; a failure ends it with its reason. */
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static PGconn *keyhole;

static void fail(const char *name, const char *why)
{
    fprintf(stderr, "%s: %s\n", name, why);
    exit(1);
}

static void insist(const char *name, const char *found, const char *expected)
{
    if (found == NULL || strcmp(found, expected) != 0)
        fail(name, found == NULL ? "nothing" : found);
}

/* The only column of an answer, its values one after the other. */
static void insist_column(const char *name, PGresult *answer, const char *expected)
{
    char found[256] = "";
    if (PQresultStatus(answer) != PGRES_TUPLES_OK)
        fail(name, PQresultErrorMessage(answer));
    for (int row = 0; row < PQntuples(answer); row++)
        strncat(found, PQgetvalue(answer, row, 0), sizeof found - strlen(found) - 1);
    insist(name, found, expected);
    PQclear(answer);
}

int main(void)
{
    const char *values[] = {"A", "D", "1000"}, *wards[] = {"B", "A"};
    const char *question = "SELECT ward FROM visits WHERE ward IN ($1,$2) GROUP BY ward HAVING count(*) > $3 ORDER BY ward";
    keyhole = PQconnectdb("");
    if (PQstatus(keyhole) != CONNECTION_OK)
        fail("connect", PQerrorMessage(keyhole));
    for (int binary = 0; binary < 2; binary++)
        insist_column("parameters", PQexecParams(keyhole, question, 3, NULL, values, NULL, NULL, binary), "A");
    PQclear(PQprepare(keyhole, "asked", question, 3, NULL));
    insist_column("prepared", PQexecPrepared(keyhole, "asked", 3, values, NULL, NULL, 0), "A");
    insist_column("domain", PQexecParams(keyhole, "SELECT DISTINCT ward FROM visits WHERE ward IN ($1,$2) ORDER BY 1", 2,
                                         NULL, wards, NULL, NULL, 0), "AB");
    PGresult *refused = PQexec(keyhole, "SELECT age FROM visits");
    insist("refusal", PQresultErrorField(refused, PG_DIAG_SQLSTATE), "42501");
    insist("hint", PQresultErrorField(refused, PG_DIAG_MESSAGE_HINT),
           "Instead you can ask: SELECT ward FROM visits GROUP BY ward HAVING count(*) > 1000;");
    if (strncmp(PQresultErrorField(refused, PG_DIAG_MESSAGE_PRIMARY), "KH103: ", 7) != 0)
        fail("code", PQresultErrorField(refused, PG_DIAG_MESSAGE_PRIMARY));
    PQclear(refused);
    if (PQenterPipelineMode(keyhole) != 1 || PQsendQueryParams(keyhole, question, 3, NULL, values, NULL, NULL, 0) != 1
        || PQpipelineSync(keyhole) != 1)
        fail("pipeline", PQerrorMessage(keyhole));
    insist_column("pipeline", PQgetResult(keyhole), "A");
    PQfinish(keyhole);
    puts("done");
    return 0;
}
